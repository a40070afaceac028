"""Large messages on their way through a compressor, which must not hold the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from client.messages.compression import compressing_takes_long

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.producers.options import ProducerOptions
    from client.producers.sending.chunking import Chunks
    from client.producers.sending.entry_writer import EntryWriter
    from client.producers.sending.pending_entries import PendingEntry
    from client.producers.sending.pending_message import PendingMessage
    from client.producers.sending.send_line import SendLine

Made: TypeAlias = "PendingEntry | Chunks"


class Compressing:
    """Makes entries of messages that go alone; of large ones in a thread, one at a time.

    Such a message stays the first of the line, where nobody goes on meanwhile. Only what waits is
    made in a thread: the caller of ``send_nowait`` wants it sent now.

    Args:
        options: The producer's.
        line: Where the message stands.
        go_on: Called when one was made.
    """

    def __init__(
        self, options: ProducerOptions, line: SendLine, go_on: Callable[[], object]
    ) -> None:
        self._options = options
        self._line = line
        self._go_on = go_on
        self._made: tuple[PendingMessage, asyncio.Future[Made]] | None = None

    def has_made(self, message: PendingMessage) -> bool:
        """Tell whether a thread was done with a message, whose payload it has taken out."""
        return self._made is not None and self._made[0] is message

    def made(self, message: PendingMessage, writer: EntryWriter) -> Made | None:
        """Return the entry of a message, or its parts; None for now if it takes long.

        Raises:
            Exception: It cannot be made.
        """
        if self._made is not None and self.has_made(message):
            return self._made[1].result()
        make = writer.chunks if self._options.chunking_enabled else writer.single
        compression = self._options.compression_type
        if not message.waits or not compressing_takes_long(compression, message.size_bytes):
            return make(message)
        self._line.is_held = message.placed = True
        making: asyncio.Future[Made] = asyncio.get_running_loop().run_in_executor(
            None, make, message
        )
        making.add_done_callback(lambda _: self._done(message, making))
        return None

    def _done(self, message: PendingMessage, making: asyncio.Future[Made]) -> None:
        self._line.is_held = False
        if making.cancelled():
            return  # The loop ends.
        making.exception()  # It is known now, if anybody wants to know.
        self._made = (message, making)
        self._go_on()
        self._made = None
