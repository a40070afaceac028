"""Errors raised when a client's memory limit refuses a request.

MemoryReserveError
    MemoryBufferIsFullError            the limit is reached, and the caller does not wait
        MemoryReserveQueueFullError    the limit is reached, and too many callers wait
    MemoryReserveTimeoutError          the memory was not granted in time
    MemoryReserveCancelledError        the caller left
    MemoryReserveClosedError           the controller was closed
"""

from __future__ import annotations


class MemoryReserveError(Exception):
    """Base class of the errors of requests that a MemoryLimitController refuses."""


class MemoryBufferIsFullError(MemoryReserveError):
    """The client's memory limit is reached, and the caller does not wait.

    Source: PulsarClientException.MemoryBufferIsFullError.

    Attributes:
        size_bytes: The requested bytes.
        usage_bytes: The reserved bytes at the refusal.
        limit_bytes: The limit.
    """

    def __init__(self, size_bytes: int, usage_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, usage_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.usage_bytes = usage_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"Client memory buffer is full: {self.usage_bytes} bytes are reserved, "
            f"the limit is {self.limit_bytes}; {self.size_bytes} more were requested"
        )


class MemoryReserveQueueFullError(MemoryBufferIsFullError):
    """The client's memory limit is reached, and the queue of waiting callers is full.

    Attributes:
        waiters: Number of waiting callers.
    """

    def __init__(self, size_bytes: int, usage_bytes: int, limit_bytes: int, waiters: int) -> None:
        super().__init__(size_bytes, usage_bytes, limit_bytes)
        self.waiters = waiters

    def __str__(self) -> str:
        return f"{super().__str__()}, and {self.waiters} callers wait already"


class MemoryReserveTimeoutError(MemoryReserveError):
    """The requested memory was not granted in time.

    Attributes:
        waited_seconds: Time that the request spent in the queue.
    """

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(waited_seconds)
        self.waited_seconds = waited_seconds

    def __str__(self) -> str:
        return f"Client memory was not granted within {self.waited_seconds:.3f} seconds"


class MemoryReserveCancelledError(MemoryReserveError):
    """The requester left or cancelled the request."""

    def __str__(self) -> str:
        return "The request for client memory was cancelled"


class MemoryReserveClosedError(MemoryReserveError):
    """The memory limit controller was closed."""

    def __str__(self) -> str:
        return "The memory limit controller is closed"
