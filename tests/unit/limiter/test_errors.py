"""Refusals are one family, and say what a caller needs to tell its user."""

from __future__ import annotations

import pytest

from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
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
def test_a_refusal_has_upstreams_sentence(error: PermitAcquireError, sentence: str) -> None:
    assert str(error) == sentence


def test_a_request_that_can_never_be_granted_is_no_refusal() -> None:
    assert not isinstance(PermitTooLargeError(11, 10), PermitAcquireError)
    assert isinstance(PermitTooLargeError(11, 10), ValueError)
