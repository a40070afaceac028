"""A program that sends and receives messages at full speed, and prints the rates as JSON.

``python -m benchmarks.client.program URL CLIENT SECONDS``; CLIENT is ``client``, ``pulsar.asyncio``
or ``pulsar.Client``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import pulsar
import pulsar.asyncio
import uvloop

import client
from benchmarks.client.rates import BATCHED, BLOCKING, FIXED, OURS, RECEIVE, SCALED, SINGLE

if TYPE_CHECKING:
    from collections.abc import Mapping

Either: TypeAlias = Any
"""An object with the same methods in both packages, without a common type."""
PAYLOAD = b"x" * 1_024
OUTSTANDING = 1_000
BATCHES: Mapping[str, object] = {
    "batching_max_messages": 1_000,
    "batching_max_allowed_size_in_bytes": 128 * 1024,
    "batching_max_publish_delay_ms": 10,
}
PRODUCING: Mapping[str, Mapping[str, object]] = {
    BATCHED: {"batching_enabled": True, **BATCHES},
    SINGLE: {"batching_enabled": False},
}
QUEUE_SIZE = 1_000


async def sent(producer: Either, seconds: float) -> tuple[int, float]:
    """Send for some seconds, with a task for each outstanding send; return number and seconds."""
    start = time.perf_counter()
    end = start + seconds
    count = 0

    async def send() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await producer.send(PAYLOAD)
            count += 1

    await asyncio.gather(*(send() for _ in range(OUTSTANDING)))
    return count, time.perf_counter() - start


async def drained(consumer: Either, count: int) -> float:
    """Receive and acknowledge ``count`` messages; return the number per second."""
    start = time.perf_counter()
    for _ in range(count):
        await consumer.acknowledge(await consumer.receive())
    return count / (time.perf_counter() - start)


async def received(
    opened: Either, names: Either, topic: str, count: int, **options: object
) -> float:
    """Subscribe to a topic and receive all its messages; return the number per second."""
    consumer = await opened.subscribe(
        topic,
        f"s-{time.time_ns()}",
        initial_position=names.InitialPosition.Earliest,
        receiver_queue_size=QUEUE_SIZE,
        **options,
    )
    try:
        return await drained(consumer, count)
    finally:
        await consumer.close()


async def asynchronous(opened: Either, names: Either, seconds: float) -> dict[str, float]:
    """Return the rate of each task for a client with the asyncio API."""
    found: dict[str, float] = {}
    topics = {}
    for task, options in PRODUCING.items():
        topics[task] = f"bench-{time.time_ns()}"
        producer = await opened.create_producer(topics[task], **options)
        count, took = await sent(producer, seconds)
        await producer.close()
        found[task] = count / took
        if task == BATCHED:
            messages = count
    found[RECEIVE] = await received(opened, names, topics[BATCHED], messages)
    return found


async def ours(url: str, seconds: float) -> dict[str, float]:
    """Return the rate of each task for this client, with both kinds of receiver queue."""
    async with client.Client(url) as opened:
        found = await asynchronous(opened, client, seconds)
        topic = f"bench-{time.time_ns()}"
        async with await opened.create_producer(topic, **PRODUCING[BATCHED]) as producer:
            count, _ = await sent(producer, seconds)
        found[SCALED] = await received(opened, client, topic, count)
    async with client.Client(url, memory_limit_bytes=0) as unlimited:
        found[FIXED] = await received(unlimited, client, topic, count)
    return found


async def official(url: str, seconds: float) -> dict[str, float]:
    """Return the rate of each task for the official client's asyncio API."""
    opened = pulsar.asyncio.Client(url, logger=_quiet())
    try:
        return await asynchronous(opened, pulsar, seconds)
    finally:
        await opened.close()


def blocking(url: str, seconds: float) -> dict[str, float]:
    """Return the rate of each task for the official blocking client, which sends with callbacks."""
    opened = pulsar.Client(url, logger=_quiet())
    found: dict[str, float] = {}
    topics: dict[str, tuple[str, int]] = {}
    for task, options in PRODUCING.items():
        topic = f"bench-{time.time_ns()}"
        producer = opened.create_producer(
            topic, block_if_queue_full=True, max_pending_messages=OUTSTANDING, **options
        )
        count, took = _sent_by_callback(producer, seconds)
        producer.close()
        found[task] = count / took
        topics[task] = topic, count
    topic, count = topics[BATCHED]
    consumer = opened.subscribe(
        topic,
        "s",
        initial_position=pulsar.InitialPosition.Earliest,
        receiver_queue_size=QUEUE_SIZE,
    )
    start = time.perf_counter()
    for _ in range(count):
        consumer.acknowledge(consumer.receive())
    found[RECEIVE] = count / (time.perf_counter() - start)
    opened.close()
    return found


def _sent_by_callback(producer: Either, seconds: float) -> tuple[int, float]:
    answered = 0
    sent_count = 0
    all_answered = threading.Event()
    start = time.perf_counter()
    end = start + seconds
    done = False

    def on_receipt(_result: object, _message_id: object) -> None:
        nonlocal answered
        answered += 1
        if done and answered == sent_count:
            all_answered.set()

    while time.perf_counter() < end:
        producer.send_async(PAYLOAD, on_receipt)
        sent_count += 1
    done = True
    producer.flush()
    while answered < sent_count:
        all_answered.wait(0.01)
    return sent_count, time.perf_counter() - start


def _quiet() -> logging.Logger:
    quiet = logging.getLogger("official client")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return quiet


def main() -> None:
    """Measure the client that the command line names, and print its rates as JSON."""
    url, name, seconds = sys.argv[1:]
    if name == BLOCKING:
        found = blocking(url, float(seconds))
    else:
        found = uvloop.run((ours if name == OURS else official)(url, float(seconds)))
    print(json.dumps(found), flush=True)
    if name != OURS:
        # The official client's threads log through the interpreter, and abort its shutdown.
        os._exit(0)


if __name__ == "__main__":
    main()
