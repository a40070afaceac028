"""Writers of entries to a transport: plain, or encrypted piece by piece.

The connection drives both kinds of writer: its call of ``begin`` passes the buffers of a batch, and
it calls ``more`` whenever the transport's own buffer is empty, until nothing is left. Both methods
return the number of bytes written to the transport.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from proto.transport.tls import TlsLayer

    Buffer = bytes | memoryview

TLS_STEP_BYTES = 262_144
"""Plain bytes encrypted ahead of the kernel: a large entry is never in memory twice."""
WRITELINES_TELLS_NOTHING = (3, 12) <= sys.version_info[:3] < (3, 12, 8) or (
    sys.version_info[:3] == (3, 13, 0)
)
"""asyncio's own ``writelines`` does not pause the protocol in these versions, which then never
learns that the buffer is empty (CPython issue 127655)."""
PLAIN_STEP_BYTES = 4 << 20
"""Bytes written to the transport in one call: a loop may write on as long as the peer reads as
fast, some 5 ms for this size."""


class Writer:
    """Base class of writers, which write batches of buffers to a transport, step by step."""

    step_bytes: int
    """Most plain bytes of a step."""

    def __init__(self) -> None:
        self._pieces: deque[Buffer] = deque()

    def begin(self, transport: asyncio.Transport, buffers: Sequence[Buffer]) -> int:
        """Start to write a batch, once the previous one is written; return the bytes written."""
        self._pieces.extend(pieces(buffers, self.step_bytes))
        return self.more(transport)

    def more(self, transport: asyncio.Transport) -> int:
        """Write the next part of the batch and return its size in bytes; 0 when done."""
        step = self._encoded(taken(self._pieces, self.step_bytes))
        if step:
            write_all(transport, step)
        return sum(map(len, step))

    def _encoded(self, step: list[Buffer]) -> Sequence[Buffer]:
        return step

    @property
    def pending(self) -> bool:
        """True while a part of the batch is unwritten."""
        return bool(self._pieces)


class PlainWriter(Writer):
    """Writer of unencrypted batches, in steps of PLAIN_STEP_BYTES."""

    step_bytes = PLAIN_STEP_BYTES

    def begin(self, transport: asyncio.Transport, buffers: Sequence[Buffer]) -> int:
        """Start to write a batch: a small one, as most are, without splitting it."""
        size_bytes = sum(map(len, buffers))
        if size_bytes > self.step_bytes:
            return super().begin(transport, buffers)
        write_all(transport, buffers)
        return size_bytes


class TlsWriter(Writer):
    """Writer of encrypted batches, which encrypts TLS_STEP_BYTES of plain bytes at a time."""

    step_bytes = TLS_STEP_BYTES

    def __init__(self, tls: TlsLayer) -> None:
        super().__init__()
        self._tls = tls

    def _encoded(self, step: list[Buffer]) -> Sequence[Buffer]:
        return [self._tls.encrypt(piece) for piece in step]


def write_all(transport: asyncio.Transport, buffers: Sequence[Buffer]) -> None:
    """Write buffers to a transport in one call.

    For a single buffer, ``write`` is cheaper than ``writelines``.
    """
    if len(buffers) == 1:
        transport.write(buffers[0])
        return
    transport.writelines(buffers)
    if WRITELINES_TELLS_NOTHING and transport.get_write_buffer_size():
        transport.set_write_buffer_limits(0)  # Makes asyncio pause the protocol.


def pieces(buffers: Sequence[Buffer], size_bytes: int) -> Iterator[Buffer]:
    """Yield buffers in order, splitting longer buffers into views of ``size_bytes``."""
    for buffer in buffers:
        if len(buffer) <= size_bytes:
            yield buffer
        else:
            view = memoryview(buffer)
            for start in range(0, len(view), size_bytes):
                yield view[start : start + size_bytes]


def taken(pending: deque[Buffer], size_bytes: int) -> list[Buffer]:
    """Remove and return the first buffers, up to ``size_bytes`` in total.

    No single buffer may be longer.
    """
    some: list[Buffer] = []
    total = 0
    while pending and total + len(pending[0]) <= size_bytes:
        some.append(pending.popleft())
        total += len(some[-1])
    return some
