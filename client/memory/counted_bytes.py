"""Memory accounting of a consumer's messages under the client's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.client_memory.memory_limit_controller import MemoryLimitController


class CountedBytes:
    """Bytes of messages, from arrival to handover to the application.

    Counting never waits: the bytes have already arrived. A single adjusted reservation covers all
    messages.

    Args:
        memory: The client's memory limit.
        until_acknowledged: Whether to count messages until acknowledgement.

    Attributes:
        memory: The client's memory limit.
        handed_out: Bytes handed to the application and still counted.
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
        """Currently counted bytes."""
        return self._reservation.size

    def arrived(self, size_bytes: int) -> None:
        """Count arrived bytes."""
        self._change(size_bytes)

    def taken(self, size_bytes: int) -> None:
        """Release bytes handed out or dropped, unless counted until acknowledgement."""
        if self._until_acknowledged:
            self.handed_out += size_bytes
        else:
            self._change(-size_bytes)

    def acknowledged(self, size_bytes: int) -> None:
        """Release acknowledged bytes."""
        if self._until_acknowledged:
            self.handed_out -= size_bytes
            self._change(-size_bytes)

    def dropped(self) -> None:
        """Release all bytes not handed out."""
        self._reservation.resize(self.handed_out)

    def close(self) -> None:
        """Release all bytes; idempotent."""
        self._reservation.release()
