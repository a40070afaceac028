"""The bytes of one consumer's messages, under the client's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.client_memory.memory_limit_controller import MemoryLimitController


class CountedBytes:
    """Bytes of messages, from their arrival until the application has them.

    They have arrived whatever the limit: counting never waits. One reservation that is adjusted
    stands for all of them.

    Args:
        memory: The client's limit.
        until_acknowledged: Count on until the application is done with the messages.

    Attributes:
        memory: The client's limit.
        handed_out: Bytes that the application has, and that still count.
    """

    __slots__ = ("_change", "_reservation", "_until_acknowledged", "handed_out", "memory")

    def __init__(self, memory: MemoryLimitController, *, until_acknowledged: bool = False) -> None:
        self.memory = memory
        self._reservation = memory.reserve_prefetched()
        self._change = self._reservation.adjust
        self._until_acknowledged = until_acknowledged
        self.handed_out = 0

    @property
    def size(self) -> int:
        """Bytes that are counted now."""
        return self._reservation.size

    def arrived(self, size_bytes: int) -> None:
        """Count bytes that are here now."""
        self._change(size_bytes)

    def taken(self, size_bytes: int) -> None:
        """Count bytes no more that were handed out or dropped, unless they count until later."""
        if self._until_acknowledged:
            self.handed_out += size_bytes
        else:
            self._change(-size_bytes)

    def acknowledged(self, size_bytes: int) -> None:
        """Count bytes no more that the application is done with."""
        if self._until_acknowledged:
            self.handed_out -= size_bytes
            self._change(-size_bytes)

    def dropped(self) -> None:
        """Count all bytes no more that were not handed out."""
        self._reservation.resize(self.handed_out)

    def close(self) -> None:
        """Count nothing any more; once more is harmless."""
        self._reservation.release()
