"""The process whose memory is measured: a client that consumes a backlog, or sends.

``python -m loadgen.scenarios.client_memory.program`` reads a plan as a line of JSON on standard
input. While it works it writes the number of messages so far on lines of their own, at the end
what it found, as JSON. It imports little: what the process takes should be the client's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from client import ConsumerType, PulsarException
from limiter.clock import LoopClock, clock_sleep
from loadgen.access import client_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from client import Client, Consumer, Producer
    from client.statistics.statistics import ClientStatistics

SAMPLES = 300
SHORTEST_SAMPLE_SECONDS = 0.05
_CLOCK = LoopClock()


@dataclass(frozen=True)
class Plan:
    """The part that a process plays.

    Attributes:
        policy: Whose queues consumers have: ``bytes`` or ``pulsar``; empty for producers.
        topics: One producer, or so many consumers, for each.
        seconds: For how long it consumes; for how long the server is stopped.
        work_seconds: The time that an application takes for a message.
        stop_pid: The server that is stopped.
    """

    service_url: str
    policy: str
    topics: list[str]
    consumers_per_topic: int
    memory_limit_bytes: int
    message_bytes: int
    messages: int
    seconds: float
    work_seconds: float
    stop_pid: int


@dataclass
class Progress:
    """The part's mutable state: messages received or delivered, and who got a first one when.

    Attributes:
        first: For each consumer, when it was wanted and when it got a message.
        stopped: From when to when the server was stopped.
    """

    begun: float = field(default_factory=time.time)
    messages: int = 0
    first: list[list[float | None]] = field(default_factory=list)
    stopped: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)

    def seconds(self) -> float:
        """Return the time since it began."""
        return time.time() - self.begun


def memory_of_this_process(name: str) -> int:
    """Return ``VmRSS`` or ``VmHWM``, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status says nothing of {name}")


def sample_of(found: ClientStatistics, progress: Progress) -> dict[str, float]:
    """Return what a client holds, and what the process takes, as one row."""
    sizes = [one.queue_size for one in found.consumers] or [0]
    topics = [topic for one in found.consumers for topic in one.topics]
    return {
        "at_seconds": progress.seconds(),
        "usage_bytes": found.memory.usage_bytes,
        "promised_bytes": found.memory.promised_bytes,
        "resident_bytes": memory_of_this_process("VmRSS"),
        "queue_least": min(sizes),
        "queue_median": statistics.median(sizes),
        "queue_most": max(sizes),
        "queue_sum": sum(sizes),
        "queued": sum(topic.messages_queued for topic in topics),
        "granted_consumers": sum(topic.permits_outstanding > 0 for topic in topics),
        "growths": sum(topic.queue_growths for topic in topics),
        "shrinks": sum(topic.queue_shrinks for topic in topics),
        "consumers_waiting": found.memory.consumers_waiting,
        "sends_waiting": sum(one.waiting_sends for one in found.producers),
        "messages": progress.messages,
    }


@asynccontextmanager
async def sampled(client: Client, plan: Plan, progress: Progress) -> AsyncIterator[None]:
    """Take samples for the time of a block, and tell how far it is."""
    pause = max(SHORTEST_SAMPLE_SECONDS, plan.seconds / SAMPLES)

    async def sample() -> None:
        while True:
            progress.samples.append(sample_of(client.statistics(), progress))
            tell(progress.messages)
            await clock_sleep(_CLOCK, pause)

    sampling = asyncio.create_task(sample())
    try:
        yield
    finally:
        sampling.cancel()
        await asyncio.wait([sampling])
        progress.samples.append(sample_of(client.statistics(), progress))


def tell(found: object) -> None:
    """Write a line for the one who started this process."""
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()


async def consume(client: Client, plan: Plan, progress: Progress) -> None:
    """Take messages from the backlog, as an application that works on each for a while.

    It keeps no message meanwhile: that would be its own memory, which nobody limits.
    """

    async def work(consumer: Consumer, first: list[float | None]) -> None:
        while True:
            message_id = (await consumer.receive()).message_id()
            if first[1] is None:
                first[1] = progress.seconds()
            progress.messages += 1
            await clock_sleep(_CLOCK, plan.work_seconds)
            await consumer.acknowledge(message_id)

    working = []
    try:
        for topic in plan.topics * plan.consumers_per_topic:
            first: list[float | None] = [progress.seconds(), None]
            progress.first.append(first)
            consumer = await client.subscribe(
                topic, plan.policy, ConsumerType.Shared, receiver_queue_policy=plan.policy
            )
            working.append(asyncio.create_task(work(consumer, first)))
        await clock_sleep(_CLOCK, plan.seconds)
    finally:
        for task in working:
            task.cancel()
        outcomes = await asyncio.gather(*working, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, PulsarException):
            raise outcome


async def produce(client: Client, plan: Plan, progress: Progress) -> None:
    """Send to a server that reads nothing for some seconds, and wait for every receipt."""
    payload = bytes(plan.message_bytes)

    async def send(producer: Producer) -> None:
        await producer.send(payload)
        progress.messages += 1

    producers = [
        await client.create_producer(
            topic, batching_enabled=False, max_pending_messages=0, send_timeout_millis=0
        )
        for topic in plan.topics
    ]
    os.kill(plan.stop_pid, signal.SIGSTOP)
    progress.stopped.append(progress.seconds())
    try:
        async with asyncio.TaskGroup() as group:
            for producer in producers * plan.messages:
                group.create_task(send(producer))
            await clock_sleep(_CLOCK, plan.seconds)
            os.kill(plan.stop_pid, signal.SIGCONT)
            progress.stopped.append(progress.seconds())
    finally:
        os.kill(plan.stop_pid, signal.SIGCONT)


async def play(plan: Plan) -> dict[str, Any]:
    """Play a part and return what was found."""
    baseline_bytes = memory_of_this_process("VmRSS")
    progress = Progress()
    async with client_of(plan.service_url, memory_limit_bytes=plan.memory_limit_bytes) as client:
        async with sampled(client, plan, progress):
            await (consume if plan.policy else produce)(client, plan, progress)
        high_water_bytes = client.memory.statistics().high_water_bytes
        resident_peak_bytes = memory_of_this_process("VmHWM")
    return {
        "policy": plan.policy,
        "begun_epoch_seconds": progress.begun,
        "baseline_bytes": baseline_bytes,
        "high_water_bytes": high_water_bytes,
        "resident_peak_bytes": resident_peak_bytes,
        "usage_after_closing_bytes": client.memory.statistics().usage_bytes,
        "messages": progress.messages,
        "stopped_seconds": progress.stopped,
        "first_messages": progress.first,
        "samples": progress.samples,
    }


def main() -> None:
    """Read the plan, play it, say what was found."""
    plan = Plan(**json.loads(sys.stdin.readline()))
    try:
        found: object = uvloop.run(play(plan))
    except (PulsarException, ExceptionGroup) as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        found = {"error": str(first)}
    tell(found)


if __name__ == "__main__":
    main()
