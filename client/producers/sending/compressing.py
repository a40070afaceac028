"""Compression of large messages in a thread, off the event loop."""

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
    """Entries of unbatched messages; large messages are compressed in a thread, one at a time.

    Meanwhile the message stays first in line, and the line is held. ``send_nowait`` compresses on
    the event loop: its message is sent immediately.

    Args:
        options: Producer options.
        line: The message's send line.
        go_on: Called after each finished entry.
    """

    def __init__(
        self, options: ProducerOptions, line: SendLine, go_on: Callable[[], object]
    ) -> None:
        self._options = options
        self._line = line
        self._go_on = go_on
        self._made: tuple[PendingMessage, asyncio.Future[Made]] | None = None

    def has_made(self, message: PendingMessage) -> bool:
        """Tell whether a thread has finished a message, and taken its payload."""
        return self._made is not None and self._made[0] is message

    def made(self, message: PendingMessage, writer: EntryWriter) -> Made | None:
        """Return a message's entry or chunks; None while a thread compresses.

        Raises:
            Exception: The entry cannot be made.
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
            return  # The event loop is closing.
        making.exception()  # Mark the error as retrieved.
        self._made = (message, making)
        self._go_on()
        self._made = None
