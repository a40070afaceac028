"""Example of a pool of workers that, on SIGTERM, finish the jobs they have started and end.

    python -m examples.worker_pool pulsar://127.0.0.1:6650 journal.txt

Each message of the topics ``jobs`` and ``batches`` is a number; the work is to write the number to
the journal. Every tenth job is refused once, as if impossible for now.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from client import Client, ConsumerType, InitialPosition
from limiter.clock import LoopClock, clock_sleep

if TYPE_CHECKING:
    from client import Consumer, Message

CLOCK = LoopClock()
TOPICS = ["jobs", "batches"]
WORKERS = 8
REFUSED_EACH = 10


async def main(service_url: str, journal: Path) -> None:
    """Run the pool of workers until SIGTERM."""
    async with Client(service_url) as client:
        consumer = await client.subscribe(
            TOPICS,
            "pool",
            ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            batch_index_ack_enabled=True,
            negative_ack_redelivery_delay_ms=50,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stop)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as pool:
            for _ in range(WORKERS):
                pool.create_task(work(consumer, journal))


async def work(consumer: Consumer, journal: Path) -> None:
    """Write the numbers of the received jobs to the journal until the consumer is stopped."""
    async for message in consumer:
        if refuses(message):
            await consumer.negative_acknowledge(message)
            continue
        await clock_sleep(CLOCK, random.uniform(0, 0.01))
        with journal.open("ab") as file:
            file.write(message.data()[:12].strip() + b"\n")
        await consumer.acknowledge(message)


def refuses(message: Message) -> bool:
    """Return True if a job is to be refused: every tenth job, only once, and never in a batch.

    A refused job in a batch would make the broker send the whole batch again.
    """
    number = int(message.data()[:12])
    alone = message.topic_name().endswith("jobs")
    return alone and not number % REFUSED_EACH and not message.redelivery_count()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
