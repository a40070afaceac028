"""A program whose consumers or producers want more memory than their client's limit allows.

``python -m benchmarks.client.limit_program URL PID TASK POLICY``; TASK is ``fill``, ``consume`` or
``produce``. It prints figures as JSON: what the client counted, and what the process took.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from client import Client, ConsumerType, InitialPosition
from limiter.clock import LoopClock, deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from client import Consumer, Producer

LIMIT_BYTES = 64 << 20
TOPICS, CONSUMERS_A_TOPIC = 100, 10
MESSAGES_A_TOPIC, MESSAGE_BYTES = 50, 100 << 10
WORK_SECONDS = 0.1
"""Seconds that an application takes for a message: meanwhile others are fetched ahead."""
PRODUCERS, SENDS, LARGE_BYTES = 10, 20, 1 << 20
LARGE = b"x" * LARGE_BYTES
"""One for all sends: what the process takes is then the client's."""
STOPPED_SECONDS = 3.0
SAMPLE_SECONDS = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


@asynccontextmanager
async def sampled(opened: Client) -> AsyncIterator[list[dict[str, float]]]:
    """Note, many times a second, what a client holds and what the process takes."""
    samples: list[dict[str, float]] = []
    start, before = time.perf_counter(), resident_bytes()

    async def sample() -> None:
        while True:
            found = opened.statistics()
            samples.append(
                {
                    "seconds": time.perf_counter() - start,
                    "usage_bytes": found.memory.usage_bytes,
                    "resident_bytes": resident_bytes() - before,
                    "queue_sizes": sum(one.queue_size for one in found.consumers),
                    "queued": sum(one.messages_queued for one in found.consumers),
                    "permits": sum(
                        topic.permits_outstanding for one in found.consumers for topic in one.topics
                    ),
                    "waiting_sends": sum(one.waiting_sends for one in found.producers),
                }
            )
            await asyncio.sleep(SAMPLE_SECONDS)

    sampling = asyncio.create_task(sample())
    try:
        yield samples
    finally:
        sampling.cancel()
        await asyncio.wait([sampling])


async def fill(url: str) -> dict[str, Any]:
    """Leave a backlog on every topic."""
    async with Client(url) as opened:
        for number in range(TOPICS):
            async with await opened.create_producer(f"limit-{number}") as producer:
                consumer = await opened.subscribe(
                    f"limit-{number}", "s", consumer_type=ConsumerType.Shared
                )
                await consumer.close()
                sends = (producer.send(b"x" * MESSAGE_BYTES) for _ in range(MESSAGES_A_TOPIC))
                await asyncio.gather(*sends)
    return {}


async def consume(url: str, policy: str) -> dict[str, Any]:
    """Consume the backlog with a thousand consumers."""
    async with (
        Client(url, memory_limit_bytes=LIMIT_BYTES) as opened,
        sampled(opened) as samples,
    ):
        left = TOPICS * MESSAGES_A_TOPIC
        first: list[float] = []
        done = asyncio.Event()
        start = time.perf_counter()

        async def work(consumer: Consumer) -> None:
            nonlocal left
            async for message in consumer:
                first.append(time.perf_counter() - start)
                await asyncio.sleep(WORK_SECONDS)
                await consumer.acknowledge(message)
                left -= 1
                if not left:
                    done.set()

        working = []
        for number in range(TOPICS * CONSUMERS_A_TOPIC):
            consumer = await opened.subscribe(
                f"limit-{number % TOPICS}",
                "s",
                consumer_type=ConsumerType.Shared,
                initial_position=InitialPosition.Earliest,
                receiver_queue_policy=policy,
            )
            working.append(asyncio.create_task(work(consumer)))
        try:
            async with deadline(LoopClock(), 120.0):
                await done.wait()
        except TimeoutError:
            pass  # Said by what is left.
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        return found_of(opened, samples, left)


async def produce(url: str, pid: int) -> dict[str, Any]:
    """Send large messages to a broker that reads nothing for some seconds."""
    async with (
        Client(url, memory_limit_bytes=LIMIT_BYTES) as opened,
        sampled(opened) as samples,
    ):
        producers = [
            await opened.create_producer(f"large-{number}", batching_enabled=False)
            for number in range(PRODUCERS)
        ]

        async def send(producer: Producer) -> int:
            sends = (producer.send(LARGE) for _ in range(SENDS))
            return sum(isinstance(one, Exception) for one in await _outcomes(*sends))

        os.kill(pid, signal.SIGSTOP)
        try:
            sending = asyncio.gather(*map(send, producers))
            await asyncio.sleep(STOPPED_SECONDS)
        finally:
            os.kill(pid, signal.SIGCONT)
        return found_of(opened, samples, sum(await sending))


async def _outcomes(*sends: Any) -> list[object]:  # noqa: ANN401 - as gather takes them
    return list(await asyncio.gather(*sends, return_exceptions=True))


def found_of(opened: Client, samples: list[dict[str, float]], missing: int) -> dict[str, Any]:
    """Return the figures of a run."""
    return {
        "high_water_bytes": opened.statistics().memory.high_water_bytes,
        "resident_bytes": max(one["resident_bytes"] for one in samples),
        "queue_sizes": max(one["queue_sizes"] for one in samples),
        "seconds": samples[-1]["seconds"],
        "missing": missing,
        "samples": samples,
    }


def main() -> None:
    """Do what the command line says."""
    url, pid, task, policy = sys.argv[1:]
    if task == "fill":
        found = uvloop.run(fill(url))
    elif task == "consume":
        found = uvloop.run(consume(url, policy))
    else:
        found = uvloop.run(produce(url, int(pid)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
