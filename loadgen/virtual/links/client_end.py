"""A client's end of a simulated connection, for the client code that real runs use, too.

The client gets the sent pieces by reference, at the moments of its reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from loadgen.engine.pacing import NEVER, UNLIMITED, Paced
from loadgen.virtual.links.pipe import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.connection import LoadConnection
    from loadgen.engine.pacing import Reader
    from loadgen.virtual.links.pipe import Buffer, Pipe
    from loadgen.virtual.loop import VirtualLoop


class ClientEnd(asyncio.Transport):
    """A client's transport, which also receives the server's bytes for the client."""

    __slots__ = (
        "_client", "_due", "_gone", "_handed_over", "_loop", "_pieces", "_reader",
        "_server_ended", "incoming", "out",
    )  # fmt: skip

    def __init__(self, loop: VirtualLoop, client: LoadConnection) -> None:
        super().__init__()
        self.out: Pipe
        self.incoming: Pipe
        self._loop = loop
        self._client = client
        self._reader = self._own_reader()
        self._pieces: deque[Buffer] = deque()
        self._handed_over = 0
        self._due = -1.0
        self._server_ended = self._gone = False

    # -- the client's transport ---------------------------------------------------------------

    def write(self, data: bytes) -> None:  # type: ignore[override]
        """Send bytes immediately."""
        if not self._gone:
            self.out.send((data,), len(data))

    def is_closing(self) -> bool:
        """Return whether no more bytes can be sent."""
        return self._gone

    def writable(self) -> None:
        """Continue to send, now that the kernel has space again."""
        self.out.go_on()

    def abort(self) -> None:
        """Close immediately; if bytes are unread, the server sees a reset."""
        if not self._gone:
            self._gone = True
            self.arriving()
            unread = self.incoming.visible > self.incoming.read
            self._pieces.clear()
            self.out.end(reset=unread)

    def pause_reading(self) -> None:
        """Stop reading until :meth:`resume_reading`."""
        self._read_by(NEVER)

    def resume_reading(self) -> None:
        """Read again, at the client's own speed."""
        self._read_by(self._own_reader())

    def _own_reader(self) -> Reader:
        """Return a new reader with the client's reading speed."""
        budget = self._client.budget
        return UNLIMITED if budget is None else Paced(budget.a_second, self._loop._now)

    def _read_by(self, reader: Reader) -> None:
        self.arriving()
        self._reader = reader
        self.arrived()

    # -- the sink of ``incoming`` -------------------------------------------------------------

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """Keep bytes that the server sent until they are read."""
        if not self._gone:
            self._pieces.extend(buffers)

    def arriving(self) -> None:
        """Read the bytes that have arrived so far, as fast as the reader does."""
        incoming = self.incoming
        read = self._reader.read_by(self._loop._now, incoming.read, incoming.visible)
        if read > incoming.read:
            incoming.was_read(read)

    def arrived(self) -> None:
        """Read the newly arrived bytes, and pass them to the client."""
        if self._gone:
            # The kernel drops bytes for a closed socket.
            return
        self.arriving()
        incoming = self.incoming
        size, self._handed_over = incoming.read - self._handed_over, incoming.read
        for piece in take(self._pieces, size):
            self._client.received(memoryview(piece))
        if not self._gone:
            self._arm()

    def _arm(self) -> None:
        """Set a timer for when the reader will have read enough for the client to act."""
        incoming = self.incoming
        wanted = incoming.read + self._client.bytes_wanted
        if self._server_ended:
            wanted = min(wanted, incoming.taken)
        if incoming.shut and incoming.read < incoming.opens_at < wanted:
            wanted = incoming.opens_at
        if wanted > incoming.read:
            when = self._reader.moment_of(wanted, self._loop._now, incoming.read, incoming.visible)
            if when is not None and when != self._due:
                self._due = when
                self._loop.after(when, self._is_due, when)
        elif self._server_ended and incoming.read == incoming.taken:
            self._over(None)

    def _is_due(self, when: float) -> None:
        if when == self._due:
            self._due = -1.0
            self.arrived()

    def ended(self, *, reset: bool) -> None:
        """Handle that the server has closed the connection."""
        if self._gone:
            return
        self._server_ended = True
        if reset:
            self._over(ConnectionResetError(104, "Connection reset by peer"))
        else:
            self.arrived()

    def _over(self, error: Exception | None) -> None:
        if not self._gone:
            self._gone = True
            self._client.connection_lost(error)
