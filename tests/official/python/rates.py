"""Publishes for some seconds and consumes the messages, after an unmeasured warm-up.

``rates.py SERVICE_URL SERVER_PID TOPIC BATCH SECONDS`` prints rates, and the server's processor
time, as JSON.
"""

import json
import os
import sys
import time
from pathlib import Path

import pulsar

SIZE_BYTES = 1_024
MOST_PENDING = 4_000
RECEIVER_QUEUE = 1_000
PATIENCE_MILLIS = 60_000
USER, SYSTEM = 11, 12


def cpu_seconds(pid):
    """Return the processor time of the server (/proc)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[USER]) + int(fields[SYSTEM])) / os.sysconf("SC_CLK_TCK")


def consumer_of(client, topic):
    """Return a consumer from the first message on."""
    return client.subscribe(
        topic,
        "rates",
        receiver_queue_size=RECEIVER_QUEUE,
        initial_position=pulsar.InitialPosition.Earliest,
    )


def measured(client, pid, topic, batch, seconds):
    consumer_of(client, topic).close()  # The subscription must exist before the first message.
    producer = client.create_producer(
        topic,
        batching_enabled=batch > 1,
        batching_max_messages=max(batch, 2),
        batching_max_publish_delay_ms=10,
        max_pending_messages=MOST_PENDING,
        block_if_queue_full=True,
    )
    payload, messages = bytes(SIZE_BYTES), 0
    cpu, start = cpu_seconds(pid), time.perf_counter()
    while time.perf_counter() < start + seconds:
        producer.send_async(payload, None)
        messages += 1
    producer.flush()
    published, cpu_in = time.perf_counter() - start, cpu_seconds(pid) - cpu
    producer.close()
    cpu, start = cpu_seconds(pid), time.perf_counter()
    consumer = consumer_of(client, topic)
    for _ in range(messages):
        consumer.acknowledge(consumer.receive(PATIENCE_MILLIS))
    consumed, cpu_out = time.perf_counter() - start, cpu_seconds(pid) - cpu
    consumer.close()
    return {
        "in_per_second": messages / published,
        "in_cpu_micros": cpu_in / messages * 1e6,
        "out_per_second": messages / consumed,
        "out_cpu_micros": cpu_out / messages * 1e6,
    }


def main(service_url, pid, topic, batch, seconds):
    client = pulsar.Client(
        service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), io_threads=1
    )
    amount = int(batch), float(seconds)
    measured(client, pid, f"{topic}-first", *amount)
    found = measured(client, pid, topic, *amount)
    client.close()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
