"""Count of the bytes waiting to be sent on a connection, and whether it is writable.

Netty's rules (ChannelOutboundBuffer): every entry weighs its bytes plus a fixed 96; a connection is
unwritable strictly above the high mark and writable again strictly below the low mark; an entry
counts in full until the kernel accepts its last byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRY_OVERHEAD_BYTES = 96
"""Overhead of each entry beside its bytes (Netty's outboundBufferEntrySizeOverhead)."""


@dataclass(frozen=True, slots=True)
class WriteBufferMarks:
    """High and low water mark of an outbound buffer, in bytes.

    Set by pulsarChannelWriteBufferHighWaterMark and pulsarChannelWriteBufferLowWaterMark.

    Raises:
        ValueError: The low mark is above the high mark.
    """

    high_bytes: int = 65_536
    low_bytes: int = 32_768

    def __post_init__(self) -> None:
        if not 0 <= self.low_bytes <= self.high_bytes:
            raise ValueError(
                f"a low mark of {self.low_bytes} bytes does not go with a high mark of "
                f"{self.high_bytes}: 0 <= low <= high"
            )


class OutboundTotals:
    """Pending bytes of all connections of a process, and their peak.

    Args:
        max_unpaid_bytes: Largest number of pending bytes without a permit of the memory limiter;
            beyond it, connections with pending bytes stop reading. 0 or less is unlimited.

    Attributes:
        pending_bytes: All waiting bytes, including the fixed 96 bytes per entry.
        unpaid_bytes: The waiting bytes without a permit of the memory limiter.
    """

    def __init__(self, max_unpaid_bytes: int = 0) -> None:
        self.max_unpaid_bytes = max_unpaid_bytes
        self.pending_bytes = 0
        self.unpaid_bytes = 0
        self.peak_bytes = 0
        self._waiting: dict[Callable[[], object], None] = {}

    @property
    def full(self) -> bool:
        """True if the pending bytes without a memory permit exceed their limit."""
        return 0 < self.max_unpaid_bytes < self.unpaid_bytes

    def change(self, delta_bytes: int, paid_bytes: int = 0) -> None:
        """Count queued bytes or, if ``delta_bytes`` is negative, sent bytes.

        A memory permit covers ``paid_bytes`` of them, which has the same sign.
        """
        self.pending_bytes += delta_bytes
        self.unpaid_bytes += delta_bytes - paid_bytes
        self.peak_bytes = max(self.peak_bytes, self.pending_bytes)
        if self._waiting and 2 * self.unpaid_bytes <= self.max_unpaid_bytes:
            self._wake()

    def call_when_less(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once when the bytes without a permit fall below half of their limit."""
        self._waiting[callback] = None

    def forget(self, callback: Callable[[], object]) -> None:
        """Cancel a callback; no-op for an unknown callback."""
        self._waiting.pop(callback, None)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for callback in waiting:
            callback()


class OutboundBuffer:
    """Counter of the pending bytes in a connection's outbound queue; holds no bytes itself."""

    def __init__(self, marks: WriteBufferMarks, totals: OutboundTotals | None = None) -> None:
        self._marks = marks
        self._next_marks = marks
        self._totals = totals
        self.pending_bytes = 0
        self.writable = True
        self._listeners: dict[Callable[[], object], None] = {}

    def __repr__(self) -> str:
        state = "writable" if self.writable else "unwritable"
        return f"<OutboundBuffer {self.pending_bytes} bytes, {state}>"

    def change_marks(self, marks: WriteBufferMarks) -> None:
        """Change the water marks, immediately or once the connection is writable again."""
        self._next_marks = marks
        if self.writable:
            self._marks = marks

    def on_writable(self, listener: Callable[[], object]) -> None:
        """Call ``listener`` once, when the connection is writable again; deduplicated.

        For senders paused by an unwritable connection, such as a dispatcher of messages. Bound: an
        entry for each listener. A closing connection calls no listener.
        """
        self._listeners[listener] = None

    def forget_listener(self, listener: Callable[[], object]) -> None:
        """Cancel a listener; no-op for an unknown listener."""
        self._listeners.pop(listener, None)

    def weigh(self, size_bytes: int, paid_bytes: int = 0) -> None:
        """Count a queued entry, of which a memory permit covers ``paid_bytes``.

        The water marks are not checked.
        """
        self._change(size_bytes + ENTRY_OVERHEAD_BYTES, paid_bytes)

    def became_unwritable(self) -> bool:
        """Check the high water mark; return True if the connection became unwritable."""
        if self.writable and self.pending_bytes > self._marks.high_bytes:
            self.writable = False
            return True
        return False

    def left(self, size_bytes: int, paid_bytes: int = 0) -> bool:
        """Subtract a sent entry; return True if the connection became writable again."""
        self._change(-(size_bytes + ENTRY_OVERHEAD_BYTES), -paid_bytes)
        if not self.writable and self.pending_bytes < self._marks.low_bytes:
            self.writable = True
            self._marks = self._next_marks
            return True
        return False

    def tell_listeners(self) -> None:
        """Call the listeners waiting for a writable connection, once each."""
        for listener in list(self._listeners):
            if not self.writable:
                return  # A listener filled the buffer again: the rest wait for the next time.
            if self._listeners.pop(listener, listener) is None:
                listener()

    def _change(self, delta_bytes: int, paid_bytes: int) -> None:
        self.pending_bytes += delta_bytes
        if self._totals is not None:
            self._totals.change(delta_bytes, paid_bytes)
