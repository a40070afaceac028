"""Refusals are one family, and carry the facts for an error message to a user."""

import pytest

from limiter.client_memory.errors import MemoryReserveQueueFullError, MemoryReserveTimeoutError
from limiter.errors import (
    LimitScope,
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
    raised_anew,
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermitAcquireTimeoutError(25.0), "Permit acquisition timed out"),
        (PermitAcquireQueueFullError(3), "Semaphore queue is full"),
        (PermitAcquireCancelledError(), "Permit acquisition was cancelled"),
        (PermitAcquireClosedError(), "Semaphore is closed"),
    ],
)
def test_a_refusal_has_the_message_of_upstream(error: PermitAcquireError, sentence: str) -> None:
    assert str(error) == sentence


def test_a_request_that_can_never_be_granted_is_a_value_error_and_not_a_refusal() -> None:
    assert not isinstance(PermitTooLargeError(11, 10), PermitAcquireError)
    assert isinstance(PermitTooLargeError(11, 10), ValueError)


@pytest.mark.parametrize(
    "error",
    [
        PermitAcquireTimeoutError(25.0),
        PermitAcquireQueueFullError(3),
        PermitAcquireCancelledError(),
        PermitTooLargeError(11, 10, LimitScope.TENANT),
        MemoryReserveQueueFullError(1, 2, 3, 4),
        MemoryReserveTimeoutError(25.0),
    ],
)
def test_a_reraised_error_is_an_equal_copy_without_a_traceback(error) -> None:
    with pytest.raises(type(error)):
        raise error
    new = raised_anew(error)
    assert new is not error
    assert new.__traceback__ is None
    assert (type(new), str(new), vars(new)) == (type(error), str(error), vars(error))
