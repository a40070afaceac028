"""A program that publishes and consumes for some seconds, and prints rates as JSON.

It also prints the server's processor time.

``python -m benchmarks.messages.client HOST PORT PID MODE SECONDS [TARGET]``: with MODE ``single``
or ``batched`` it measures publishing, then dispatch, optionally to the broker ``TARGET`` through a
proxy. With MODE ``paced`` it sends 1,000 messages a second to a waiting consumer and measures their
latency.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.messages.wire import RawPeer, Sends, connected, message_of
from benchmarks.processor_time import cpu_seconds
from limiter.clock import LoopClock, deadline

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb

SIZE_BYTES = 1_024
BATCH = 100
WINDOWS = {1: 1_000, BATCH: 40}
"""SENDs without a receipt."""
RECEIVER_QUEUE = 1_000
ACKS_AT_ONCE = 1_000
PACED_RATE = 1_000
DRAIN_SECONDS = 60.0
CLOCK = LoopClock()


async def published(peer: RawPeer, sends: Sends, seconds: float) -> int:
    """Send messages as fast as receipts arrive; return the number of SEND commands."""
    window, sent = WINDOWS[sends.batch], 0
    more = asyncio.Event()
    peer.on_receipts = more.set
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        room = window - (sent - peer.receipts)
        if room < window // 4:
            more.clear()
            await more.wait()
            continue
        peer.transport.write(b"".join(sends.frame(sent + one) for one in range(room)))
        sent += room
        await asyncio.sleep(0)
    async with deadline(CLOCK, DRAIN_SECONDS):
        while peer.receipts < sent:
            more.clear()
            await more.wait()
    return sent


class Drain:
    """Consumes all messages of a topic, and acknowledges them in groups.

    It sends permits for half of the receiver queue at a time.
    """

    def __init__(self, peer: RawPeer, entries: int, batch: int) -> None:
        self._peer = peer
        self._left = entries
        self._batch = batch
        self._used = 0
        self._ids: list[pb.MessageIdData] = []
        self.done = asyncio.Event()
        peer.on_message = self._message

    def _message(self, command: bytes, _: memoryview) -> None:
        self._left -= 1
        self._used += self._batch
        self._ids.append(message_of(command).message_id)
        if self._used >= RECEIVER_QUEUE // 2:
            self._peer.flow(self._used)
            self._used = 0
        if len(self._ids) >= ACKS_AT_ONCE or not self._left:
            self._peer.acknowledge(self._ids)
            self._ids = []
        if not self._left:
            self.done.set()


async def throughput(
    host: str, port: int, pid: int, batch: int, seconds: float, target: str
) -> dict[str, Any]:
    """Measure publishing and then dispatch; return rates and the server's processor time."""
    topic = f"persistent://public/default/bench-{time.time_ns()}"
    producer = await connected(host, port, target)
    consumer = await connected(host, port, target)
    await producer.produce(topic)
    await consumer.consume(topic)
    start, used = time.perf_counter(), cpu_seconds(pid)
    sent = await published(producer, Sends(SIZE_BYTES, batch), seconds)
    middle, used_in = time.perf_counter(), cpu_seconds(pid)
    drain = Drain(consumer, sent, batch)
    consumer.flow(RECEIVER_QUEUE)
    async with deadline(CLOCK, DRAIN_SECONDS):
        await drain.done.wait()
    end, used_out = time.perf_counter(), cpu_seconds(pid)
    messages = sent * batch
    return {
        "messages": messages,
        "in_per_second": messages / (middle - start),
        "in_cpu_micros": (used_in - used) / messages * 1e6,
        "out_per_second": messages / (end - middle),
        "out_cpu_micros": (used_out - used_in) / messages * 1e6,
    }


async def paced(host: str, port: int, pid: int, seconds: float) -> dict[str, Any]:
    """Send single messages at a constant rate, and return figures of their latency."""
    topic = f"persistent://public/default/bench-{time.time_ns()}"
    producer, consumer = await connected(host, port), await connected(host, port)
    await producer.produce(topic)
    await consumer.consume(topic)
    consumer.flow(RECEIVER_QUEUE)
    sends = Sends(SIZE_BYTES, 1)
    sent_at: list[float] = []
    took: list[float] = []
    all_came = asyncio.Event()
    ids: list[pb.MessageIdData] = []

    def received(command: bytes, _: memoryview) -> None:
        took.append(time.perf_counter() - sent_at[len(took)])
        if len(took) == count:
            all_came.set()
        ids.append(message_of(command).message_id)
        if len(ids) == RECEIVER_QUEUE // 2:
            consumer.flow(len(ids))
            consumer.acknowledge(ids)
            ids.clear()

    consumer.on_message = received
    used, count = cpu_seconds(pid), int(PACED_RATE * seconds)
    start = time.perf_counter()
    for number in range(count):
        wait = start + number / PACED_RATE - time.perf_counter()
        await asyncio.sleep(max(0.0, wait))
        sent_at.append(time.perf_counter())
        producer.transport.write(sends.frame(number))
    async with deadline(CLOCK, DRAIN_SECONDS):
        await all_came.wait()
    took.sort()
    return {
        "p50_millis": took[count // 2] * 1e3,
        "p99_millis": took[count * 99 // 100] * 1e3,
        "cpu_micros": (cpu_seconds(pid) - used) / count * 1e6,
    }


async def main() -> None:
    """Measure in the mode that the command line names, and print the result as JSON."""
    host, port, pid, mode, seconds, *targets = sys.argv[1:]
    if mode == "paced":
        found = await paced(host, int(port), int(pid), float(seconds))
    else:
        batch = BATCH if mode == "batched" else 1
        target = targets[0] if targets else ""
        found = await throughput(host, int(port), int(pid), batch, float(seconds), target)
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main())
