"""How entries become writes: plain, or encrypted piece by piece.

Both kinds are driven by the connection: ``begin`` takes the buffers of one batch, and ``more``
is called whenever the transport's own buffer is empty, until it says that nothing is left. Both
return how many bytes they gave the transport.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from proto.tls import TlsLayer

    Buffer = bytes | memoryview

TLS_STEP_BYTES = 262_144
"""Plain bytes encrypted ahead of the kernel, so that a large entry is never there twice."""


class Writer(Protocol):
    """Hands one batch over to a transport."""

    def begin(self, transport: asyncio.Transport, buffers: Sequence[Buffer]) -> int:
        """Start a batch; the one before is gone."""

    def more(self, transport: asyncio.Transport) -> int:
        """Write the next part of the batch; 0 when there is none."""


class PlainWriter:
    """Everything at once: one write, or one writelines."""

    def begin(self, transport: asyncio.Transport, buffers: Sequence[Buffer]) -> int:
        """See Writer.begin."""
        if len(buffers) == 1:
            transport.write(buffers[0])
        else:
            transport.writelines(buffers)
        return sum(map(len, buffers))

    def more(self, transport: asyncio.Transport) -> int:
        """See Writer.more."""
        return 0


class TlsWriter:
    """At most TLS_STEP_BYTES of plain bytes as ciphertext in the transport."""

    def __init__(self, tls: TlsLayer) -> None:
        self._tls = tls
        self._pieces: deque[memoryview] = deque()

    def begin(self, transport: asyncio.Transport, buffers: Sequence[Buffer]) -> int:
        """See Writer.begin."""
        for buffer in buffers:
            view = memoryview(buffer)
            self._pieces.extend(
                view[start : start + TLS_STEP_BYTES]
                for start in range(0, len(view), TLS_STEP_BYTES)
            )
        return self.more(transport)

    def more(self, transport: asyncio.Transport) -> int:
        """See Writer.more."""
        ciphertext, taken = [], 0
        while self._pieces and taken + len(self._pieces[0]) <= TLS_STEP_BYTES:
            piece = self._pieces.popleft()
            taken += len(piece)
            ciphertext.append(self._tls.encrypt(piece))
        if ciphertext:
            transport.writelines(ciphertext)
        return sum(map(len, ciphertext))
