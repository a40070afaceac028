"""Large messages are encoded in a thread while a caller waits."""

import asyncio
import threading
from typing import cast

import pytest

from client.messages.enums import CompressionType
from client.producers.options import ProducerOptions
from client.producers.sending.entry_writer import Compressing, EntryWriter
from client.producers.sending.pending_message import PendingMessage
from client.producers.sending.send_line import SendLine
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.clocks.settle import settle
from tests.unit.client.producers.sending.messages import pending

LARGE = 200_000


class Writer:
    """Records the thread making an entry, and succeeds or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.threads: list[threading.Thread] = []
        self.error = error

    def single(self, _: PendingMessage) -> str:
        """Return an entry."""
        self.threads.append(threading.current_thread())
        if self.error is not None:
            raise self.error
        return "made"


class Sender:
    """A line whose messages become entries."""

    def __init__(self, error: Exception | None = None) -> None:
        options = ProducerOptions(compression_type=CompressionType.ZLib)
        self.writer = Writer(error)
        self.outcomes: list[object] = []
        self.line = SendLine(MemoryLimitController(), 10, self._take)
        self.compressing = Compressing(options, self.line, self.line.go_on)

    def _take(self, message: PendingMessage) -> bool:
        try:
            made = self.compressing.made(message, cast("EntryWriter", self.writer))
        except MemoryError as error:
            self.outcomes.append(error)
            return True
        if made is not None:
            self.outcomes.append(made)
        return made is not None

    async def done(self) -> None:
        """Return when no thread works any more."""
        await asyncio.get_running_loop().shutdown_default_executor()
        await settle()


@pytest.mark.parametrize(("size", "waits", "beside"), [
    (LARGE, True, True), (LARGE, False, False), (10, True, False),
])  # fmt: skip
async def test_only_a_large_message_whose_caller_waits_is_compressed_in_a_thread(
    size, waits, beside
) -> None:
    sender = Sender()
    sender.line.enter(pending(bytes(size), waits=waits))
    assert sender.line.is_held is beside
    await sender.done()
    assert sender.outcomes == ["made"]
    assert [one is not threading.main_thread() for one in sender.writer.threads] == [beside]
    assert not sender.line.is_held


async def test_a_message_whose_compression_raises_fails_in_its_turn() -> None:
    error = MemoryError("no room")
    sender = Sender(error)
    sender.line.enter(pending(bytes(LARGE)))
    await sender.done()
    assert sender.outcomes == [error]


async def test_a_message_cancelled_during_compression_is_not_sent_and_the_next_message_is() -> None:
    sender = Sender()
    left, behind = pending(bytes(LARGE)), pending()
    sender.line.enter(left)
    sender.line.enter(behind)
    sender.line.leave(left)
    await sender.done()
    assert sender.outcomes == ["made"]
    assert (sender.line.places, len(sender.line)) == (1, 0)
