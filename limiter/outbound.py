"""How many bytes wait to leave a connection, and whether that is too many.

Netty's rules (ChannelOutboundBuffer): every entry weighs its bytes plus a fixed 96; a
connection is unwritable strictly above the high mark and writable again strictly below the
low mark; an entry counts in full until its last byte is with the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

ENTRY_OVERHEAD_BYTES = 96
"""What each entry weighs beside its bytes (Netty's outboundBufferEntrySizeOverhead)."""


@dataclass(frozen=True, slots=True)
class WriteBufferMarks:
    """The two marks, in bytes (pulsarChannelWriteBufferHighWaterMark and LowWaterMark)."""

    high_bytes: int = 65_536
    low_bytes: int = 32_768


class OutboundTotals:
    """Pending bytes of all connections of a process, and the most there ever were."""

    def __init__(self) -> None:
        self.pending_bytes = 0
        self.peak_bytes = 0

    def change(self, delta_bytes: int) -> None:
        """Add what was queued, or subtract what has left."""
        self.pending_bytes += delta_bytes
        self.peak_bytes = max(self.peak_bytes, self.pending_bytes)


class OutboundBuffer:
    """The weight of one connection's outbound queue. It holds no bytes, it counts them."""

    def __init__(self, marks: WriteBufferMarks, totals: OutboundTotals | None = None) -> None:
        self._marks = marks
        self._totals = totals
        self.pending_bytes = 0
        self.writable = True

    def __repr__(self) -> str:
        state = "writable" if self.writable else "unwritable"
        return f"<OutboundBuffer {self.pending_bytes} bytes, {state}>"

    def queued(self, size_bytes: int) -> bool:
        """Count an entry of ``size_bytes``; true when that made the connection unwritable."""
        self._change(size_bytes + ENTRY_OVERHEAD_BYTES)
        if self.writable and self.pending_bytes > self._marks.high_bytes:
            self.writable = False
            return True
        return False

    def left(self, size_bytes: int) -> bool:
        """Count an entry that is gone; true when that made the connection writable again."""
        self._change(-(size_bytes + ENTRY_OVERHEAD_BYTES))
        if not self.writable and self.pending_bytes < self._marks.low_bytes:
            self.writable = True
            return True
        return False

    def _change(self, delta_bytes: int) -> None:
        self.pending_bytes += delta_bytes
        if self._totals is not None:
            self._totals.change(delta_bytes)
