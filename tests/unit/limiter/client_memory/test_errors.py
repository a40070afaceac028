"""A refusal carries the facts for an error message to a user."""

import pytest

from limiter.client_memory.errors import (
    MemoryBufferIsFullError,
    MemoryReserveCancelledError,
    MemoryReserveClosedError,
    MemoryReserveError,
    MemoryReserveQueueFullError,
    MemoryReserveTimeoutError,
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            MemoryBufferIsFullError(5, 101, 100),
            "Client memory buffer is full: 101 bytes are reserved, the limit is 100; "
            "5 more were requested",
        ),
        (
            MemoryReserveQueueFullError(5, 101, 100, 3),
            "Client memory buffer is full: 101 bytes are reserved, the limit is 100; "
            "5 more were requested, and 3 callers wait already",
        ),
        (
            MemoryReserveTimeoutError(30.0),
            "Client memory was not granted within 30.000 seconds",
        ),
        (MemoryReserveCancelledError(), "The request for client memory was cancelled"),
        (MemoryReserveClosedError(), "The memory limit controller is closed"),
    ],
)
def test_each_refusal_names_its_reason_and_figures(
    error: MemoryReserveError, sentence: str
) -> None:
    assert isinstance(error, MemoryReserveError)
    assert str(error) == sentence


def test_a_full_queue_error_is_also_a_full_buffer_error() -> None:
    assert issubclass(MemoryReserveQueueFullError, MemoryBufferIsFullError)
