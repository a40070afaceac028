"""A pool of workers ended by SIGTERM repeatedly; each message is processed once."""

import asyncio
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from client import Client, Producer
from examples.worker_pool import TOPICS
from loadgen.places.server_process import ServerLaunch, running_server
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL

ENDS = 100
QUICK_ENDS = 5
LIFE_SECONDS = (0.1, 0.6)
END_SECONDS = 10.0
PARTS_BYTES = 50_000
MAX_MESSAGE_BYTES = 20_000
PAUSE_SECONDS = 0.005
LAST_SECONDS = 60.0


def prove(options: ProofOptions) -> ProofResult:
    """Publish without a pause; start and end pools; then finish with a last pool."""
    result = ProofResult()
    journal = options.out / "journal.txt"
    journal.unlink(missing_ok=True)
    journal.touch()
    keys = {"brokerServicePort": "0", "maxMessageSize": str(MAX_MESSAGE_BYTES), **LOCAL}
    with running_server(ServerLaunch("broker", keys, options.out / "broker.log")) as broker:
        ends = QUICK_ENDS if options.quick else ENDS
        with published(broker.service_url) as sent:
            codes = Counter(
                end_of_pool(broker.service_url, journal, options, number) for number in range(ends)
            )
        pool = start_pool(broker.service_url, journal)
        wait_for(journal, sent[0])
        codes[ended(pool)] += 1
    done = Counter(int(line) for line in journal.read_text().split())
    wanted = range(sent[0])
    lost = [number for number in wanted if not done[number]]
    repeated = [number for number, times in done.items() if times > 1]
    result.figures = {"ends": ends, "sent": sent[0], "done": sum(done.values()), "codes": codes}
    said = f"{sent[0]} messages, {ends} pools ended"
    result.check("ends in order", set(codes) == {0}, f"exit codes {dict(codes)}")
    result.check("nothing is lost", not lost, f"{said}: {len(lost)} not done: {lost[:5]}")
    result.check("nothing is repeated", not repeated, f"{said}: {len(repeated)} done twice")
    return result


def start_pool(service_url: str, journal: Path) -> subprocess.Popen[bytes]:
    """Start a pool; return after it has subscribed."""
    command = [sys.executable, "-m", "examples.worker_pool", service_url, str(journal)]
    pool = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert pool.stdout is not None
    pool.stdout.readline()
    return pool


def end_of_pool(service_url: str, journal: Path, options: ProofOptions, number: int) -> int:
    """End a pool after a moment; return its exit code."""
    options.note(f"pool {number + 1}")
    pool = start_pool(service_url, journal)
    threading.Event().wait(random.uniform(*LIFE_SECONDS))
    return ended(pool)


def ended(pool: subprocess.Popen[bytes]) -> int:
    pool.terminate()
    with pool:
        return pool.wait(END_SECONDS)


@contextmanager
def published(service_url: str) -> Iterator[list[int]]:
    """Publish in a thread while the block runs; the list holds the number of messages."""
    count, stopping = [0], threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(publish(service_url, count, stopping)), daemon=True
    )
    thread.start()
    try:
        yield count
    finally:
        stopping.set()
        thread.join(LAST_SECONDS)


async def publish(service_url: str, count: list[int], stopping: threading.Event) -> None:
    """Send numbers: batched to one topic, unbatched to the other, some in chunks."""
    async with Client(service_url) as client:
        alone = await client.create_producer(
            TOPICS[0], batching_enabled=False, chunking_enabled=True
        )
        batches = await client.create_producer(TOPICS[1])
        while not stopping.is_set():
            await asyncio.gather(*(send(batches, count) for _ in range(7)), send(alone, count))
            if not count[0] % 160:
                await send(alone, count, bytes(PARTS_BYTES))
            await asyncio.sleep(PAUSE_SECONDS)


async def send(producer: Producer, count: list[int], behind: bytes = b"") -> None:
    number, count[0] = count[0], count[0] + 1
    await producer.send(b"%12d" % number + behind)


def wait_for(journal: Path, sent: int) -> None:
    """Wait until so many lines are written, or no more follow."""
    known, unchanged = -1, 0
    while known < sent and unchanged < LAST_SECONDS:
        threading.Event().wait(1)
        lines = journal.read_bytes().count(b"\n")
        known, unchanged = lines, 0 if lines > known else unchanged + 1
