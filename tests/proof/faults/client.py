"""The official Python client on a topic with a fault.

``python -m tests.proof.faults.client FOLDER SERVICE_URL``: for each line, a topic, it publishes and
consumes with a new client, and prints the application's result as a line.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar

COUNT = 12
TIMEOUT_SECONDS = 6
QUIET_MILLIS = 3_000


def run(client: Any, topic: str) -> dict[str, Any]:
    """Publish and consume; return the result."""
    errors: list[str] = []
    sent: set[bytes] = set()
    received: set[bytes] = set()
    repeated = 0

    def made(kind: str, call: Callable[[], Any]) -> Any:
        try:
            return call() or True
        except pulsar.PulsarException as error:
            errors.append(f"{kind}: {type(error).__name__}")
            return None

    consumer = made("subscribe", lambda: client.subscribe(topic, "s"))
    producer = made(
        "create",
        lambda: client.create_producer(topic, send_timeout_millis=1_000 * TIMEOUT_SECONDS),
    )
    for number in range(COUNT if producer is not None else 0):
        payload = str(number).encode()
        if made("send", lambda one=payload: producer.send(one)):
            sent.add(payload)
    while consumer is not None and sent - received:
        try:
            message = consumer.receive(QUIET_MILLIS)
        except pulsar.Timeout:
            break
        repeated += message.data() in received
        received.add(message.data())
        made("acknowledge", lambda one=message: consumer.acknowledge(one))
    return {
        "errors": errors,
        "received": len(received),
        "missing": len(sent - received),
        "repeated": repeated,
    }


def main() -> None:
    folder, url = sys.argv[1:]
    log = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(Path(folder) / "client-python.log"))
    for line in sys.stdin:
        client = pulsar.Client(url, operation_timeout_seconds=TIMEOUT_SECONDS, logger=log)
        sys.stdout.write(json.dumps(run(client, line.strip())) + "\n")
        sys.stdout.flush()
        client.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
