"""A broker's disk is filled and freed ten times: it continues without loss.

The disk is a real file system of 64 MiB (ext4 on an image, mounted for the broker alone). Four
producers publish all the time, each with its consumer; while the disk is filled consumers do not
read, so that the database must grow. In some rounds messages alone fill it, until consumers read
again. In other rounds the broker is killed or stopped on the full disk, a start is tried there, and
it is restarted with free space.
"""

import asyncio
import operator
import os
import secrets
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import proto.PulsarApi_pb2 as pb
from loadgen.places.server_process import ServerStartError, running_server
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import LOCAL, OWN_ERROR, Restartable
from tests.proof.stored.damaged_database import is_sentence
from tests.proof.stored.numbered import number_of
from tests.proof.stored.small_disk import FILLER, MEBIBYTE, SmallDisk, SmallDiskLaunch, empty, fill
from tests.support.peers.steady_publisher import (
    LostConnectionError,
    SteadyPublisher,
    connected,
)

ROUNDS, QUICK_ROUNDS = 10, 2
DISK_BYTES = 64 * MEBIBYTE
TOPICS = [f"persistent://public/default/{name}" for name in ("one", "two", "three", "four")]
MOST_BYTES = 20_000
MOST_LEFT_BLOCKS = 1_500
FULL_SECONDS = 1.5
"""Time without a receipt after which the disk counts as full."""
MOST_SECONDS = 5.0
SPARE_DESCRIPTORS = 6
"""Connections that read the database are opened when first needed."""
PERMITS = 20
MOST_AHEAD = 100
"""A producer's lead over its consumer, while space is free."""
PAUSE_SECONDS = 0.4
"""Between windows of a producer."""
HURRIED_PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 60.0
KILLED, STOPPED = "killed", "stopped"
ENDS = {3: KILLED, 6: STOPPED, 8: KILLED}
"""Rounds in which the broker ends on the full disk."""
BY_MESSAGES = {1, 5}
"""Rounds in which only messages fill the disk."""
Type = pb.BaseCommand


def prove(options: ProofOptions) -> ProofResult:
    """Fill a disk and free it, repeatedly."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    disk = SmallDisk(options.out.resolve() / "disk.img", options.out.resolve() / "disk")
    try:
        disk.make(DISK_BYTES)
    except ProofError as error:
        result.check("skipped", True, f"skipped: no file system can be mounted here: {error}")
        return result
    seed = secrets.randbelow(1 << 32)
    with ExitStack() as stack:
        settings = {
            **LOCAL,
            "floodgateMessageStore": f"sqlite://{disk.place / 'messages.db'}",
            "managedLedgerMaxEntriesPerLedger": "50",
            "retentionCheckIntervalInSeconds": "1",
        }
        launch = SmallDiskLaunch("broker", settings, options.out / "broker.log", disk=disk)
        broker = Restartable(stack, partial(_launch, launch))
        rounds = QUICK_ROUNDS if options.quick else ROUNDS
        proof = FullDisk(broker, launch, options, Random(seed), result)
        try:
            asyncio.run(proof.play(rounds, seed))
        except* ProofError as errors:
            raise ProofError(str(errors.exceptions[0])) from None
    return result


def _launch(launch: SmallDiskLaunch, port: int) -> SmallDiskLaunch:
    return replace(launch, settings={**launch.settings, "brokerServicePort": str(port)})


def _content(number: int) -> bytes:
    return b"message %d " % number + bytes((number % 251,)) * (number * 7_919 % MOST_BYTES)


class Reader:
    """A topic's consumer that acknowledges all it receives, while it may read.

    Attributes:
        topic: Its name.
        may_read: Cleared to stop reading.
        came: The received numbers; -1 for a payload that differs from the published.
    """

    def __init__(self, url: str, topic: str) -> None:
        self._url, self.topic = url, topic
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.came: set[int] = set()

    async def run(self) -> None:
        """Read until cancelled, whatever happens to the broker."""
        while True:
            with suppress(LostConnectionError, OSError, EOFError, AssertionError):
                await self._read()
            await asyncio.sleep(0.1)

    async def _read(self) -> None:
        peer = await connected(self._url, self.topic)
        try:
            if (await peer.subscribe(self.topic)).type != Type.SUCCESS:
                return
            while True:
                await self.may_read.wait()
                await peer.flow(PERMITS)
                for _ in range(PERMITS):
                    message = await peer.message()
                    number = number_of(message.payload)
                    self.came.add(number if message.payload == _content(number) else -1)
                    await peer.ack(message.position)
        finally:
            peer.close()


class Publisher(SteadyPublisher):
    """A producer that waits for its consumer while reading is on, and hurries while off."""

    def __init__(self, url: str, topic: str, reader: Reader) -> None:
        super().__init__(url, topic, _content)
        self._reader = reader

    async def _between_windows(self, pause_seconds: float) -> None:
        is_read = self._reader.may_read.is_set()
        await asyncio.sleep(pause_seconds if is_read else HURRIED_PAUSE_SECONDS)
        while self._reader.may_read.is_set() and self._is_ahead():  # noqa: ASYNC110 - of two
            await asyncio.sleep(pause_seconds)

    def _is_ahead(self) -> bool:
        return self.receipted - len(self._reader.came) > MOST_AHEAD


class FullDisk:
    """The rounds and their observations."""

    def __init__(
        self,
        broker: Restartable,
        launch: SmallDiskLaunch,
        options: ProofOptions,
        random: Random,
        result: ProofResult,
    ) -> None:
        self._broker, self._launch, self._options = broker, launch, options
        self._random, self._result = random, result
        url = broker.server.service_url
        self._readers = [Reader(url, topic) for topic in TOPICS]
        self._publishers = [Publisher(url, one.topic, one) for one in self._readers]
        self._back_seconds: list[float] = []
        self._descriptors: dict[int, list[int]] = {}
        self._starts: list[str] = []

    @property
    def _disk(self) -> Path:
        assert self._launch.disk is not None
        return self._launch.disk.seen_by(self._broker.server.pid)

    async def play(self, rounds: int, seed: int) -> None:
        """Play all rounds, drain, and judge."""
        async with asyncio.TaskGroup() as group:
            publishing = [group.create_task(one.run(PAUSE_SECONDS)) for one in self._publishers]
            reading = [group.create_task(one.run()) for one in self._readers]
            await self._all_receipted()
            for number in range(rounds):
                self._options.note(f"seed {seed}, round {number + 1}")
                await self._round(number)
            for publisher in self._publishers:
                publisher.stop()
            await asyncio.wait(publishing, timeout=PATIENCE_SECONDS)
            await self._drained()
            for task in reading:
                task.cancel()
        self._judge(rounds, seed)

    async def _round(self, number: int) -> None:
        for reader in self._readers:
            reader.may_read.clear()
        if number not in BY_MESSAGES:
            fill(self._disk, self._random.randrange(MOST_LEFT_BLOCKS))
        await self._nobody_receipted()
        if number in ENDS:
            await asyncio.to_thread(self._end, ENDS[number])
        else:
            pid = self._broker.server.pid
            self._descriptors.setdefault(pid, []).append(len(os.listdir(f"/proc/{pid}/fd")))
        empty(self._disk)
        begun = time.monotonic()
        for reader in self._readers:
            reader.may_read.set()
        await self._all_receipted()
        self._back_seconds.append(time.monotonic() - begun)
        await self._drained()

    def _end(self, how: str) -> None:
        """End the broker, try to start it on the full disk, and restart it with free space."""
        disk = self._launch.disk
        assert disk is not None
        os.kill(self._broker.server.pid, signal.SIGKILL if how == KILLED else signal.SIGTERM)
        self._broker.stop()
        disk.run("sh", "-c", f"cat /dev/zero >>{disk.place / FILLER}; true")
        log = self._options.out / f"start-on-full-disk-{len(self._starts)}.log"
        settings = {**self._launch.settings, "brokerServicePort": "0"}
        try:
            with running_server(replace(self._launch, log=log, settings=settings)):
                self._starts.append("")
        except ServerStartError as error:
            self._starts.append(str(error).partition("did not start: ")[2] or str(error))
        disk.run("rm", "-f", str(disk.place / FILLER))
        self._broker.restart()

    # -- waiting ------------------------------------------------------------------------------

    def _receipted(self) -> list[int]:
        return [one.receipted for one in self._publishers]

    async def _all_receipted(self) -> None:
        """Wait until each producer has a further receipt."""
        before = self._receipted()
        await _until(
            lambda: all(map(operator.lt, before, self._receipted())), "there is room, no receipts"
        )

    async def _nobody_receipted(self) -> None:
        """Wait until no producer has had a receipt for a while."""
        seen, since = self._receipted(), time.monotonic()

        def is_full() -> bool:
            nonlocal seen, since
            if seen != (now := self._receipted()):
                seen, since = now, time.monotonic()
            return time.monotonic() - since > FULL_SECONDS

        await _until(is_full, "the disk does not become full")

    async def _drained(self) -> None:
        """Wait for all messages receipted until now, or the timeout."""
        receipted = self._receipted()

        def all_came() -> bool:
            pairs = zip(receipted, self._readers, strict=True)
            return all(one.came.issuperset(range(count)) for count, one in pairs)

        with suppress(ProofError):
            await _until(all_came, "")

    # -- the result ---------------------------------------------------------------------------

    def _judge(self, rounds: int, seed: int) -> None:
        result, back = self._result, [round(one, 2) for one in self._back_seconds]
        receipts = sum(self._receipted())
        pairs = list(zip(self._publishers, self._readers, strict=True))
        lost = sum(len(set(range(by.receipted)) - one.came) for by, one in pairs)
        altered = sum(-1 in one.came for one in self._readers)
        result.figures.update(
            seed=seed,
            receipts=receipts,
            back_seconds=back,
            descriptors=list(self._descriptors.values()),
            connections=[one.connections for one in self._publishers],
            starts=[one or "it starts" for one in self._starts],
        )
        result.check(
            "all goes on",
            len(back) == rounds and max(back) <= MOST_SECONDS,
            f"{len(back)} times all four producers had receipts within {max(back):.1f} s of room",
        )
        result.check(
            "nothing is lost",
            not lost and not altered,
            f"of {receipts:,} messages with a receipt {lost} did not come; in {altered} topics "
            f"something came altered; seed {seed}",
        )
        lives = [(min(one), max(one)) for one in self._descriptors.values()]
        flat = all(most - least <= SPARE_DESCRIPTORS for least, most in lives)
        sentence = f"descriptors on the full disk, at least and at most in each life: {lives}"
        result.check("descriptors are flat", flat, sentence)
        wrong = [one for one in self._starts if one and not is_sentence(one)]
        sentence = f"{len(self._starts)} starts on the full disk start, or say why not: {wrong}"
        result.check("starts say what is wrong", not wrong, sentence)
        logs = [path.read_bytes() for path in self._options.out.glob("*.log")]
        traces = sum(b"Traceback" in log or OWN_ERROR in log for log in logs)
        result.check("no traces", not traces, f"{traces} of {len(logs)} logs have a traceback")


async def _until(holds: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise ProofError(f"{otherwise} after {PATIENCE_SECONDS:g} s")
        await asyncio.sleep(0.02)
