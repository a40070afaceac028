"""Errors raised when a request for permits is not granted.

PermitAcquireError
    PermitAcquireTimeoutError      the permit was not granted in time
    PermitAcquireQueueFullError    the bounded queue had no slot
    PermitAcquireCancelledError    the owner left, or its is_cancelled() was true
    PermitAcquireClosedError       the limiter was closed
    PermitAcquireRefusedError      the admission policy refused the request
    PermitAcquireStalledError      the youngest growth was refused, as all holders waited to grow
PermitTooLargeError                the request exceeds a limit (a ValueError)
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TypeVar

ErrorT = TypeVar("ErrorT", bound=Exception)


class PermitAcquireError(Exception):
    """Base class of the errors of refused requests, which servers report as TooManyRequests."""


class PermitAcquireTimeoutError(PermitAcquireError):
    """The permit was not granted in time.

    Attributes:
        waited_seconds: Time the request spent in the queue.
    """

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(waited_seconds)
        self.waited_seconds = waited_seconds

    def __str__(self) -> str:
        return "Permit acquisition timed out"


class PermitAcquireQueueFullError(PermitAcquireError):
    """The queue of waiting requests was full.

    Attributes:
        queue_size: Number of waiting requests.
    """

    def __init__(self, queue_size: int) -> None:
        super().__init__(queue_size)
        self.queue_size = queue_size

    def __str__(self) -> str:
        return "Semaphore queue is full"


class PermitAcquireCancelledError(PermitAcquireError):
    """The requester left or cancelled the request."""

    def __str__(self) -> str:
        return "Permit acquisition was cancelled"


class PermitAcquireClosedError(PermitAcquireError):
    """The limiter was closed, and grants no more permits."""

    def __str__(self) -> str:
        return "Semaphore is closed"


class PermitAcquireStalledError(PermitAcquireError):
    """A permit may not grow: all held permits waited to grow, so one had to be refused."""

    def __str__(self) -> str:
        return "Permit growth was refused to end a stall"


_LABEL = re.compile(r"[a-z][a-z0-9_]{0,39}")


class PermitAcquireRefusedError(PermitAcquireError):
    """The admission policy refused the request.

    Attributes:
        label: The reason's metric label: lower-case letters, digits and underscores.
        text: The reason shown to the client.
    """

    def __init__(self, label: str, text: str) -> None:
        super().__init__(label, text)
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"label {label[:80]!r} of a refusal: expected at most 40 small letters, digits and "
                "underscores, such as expected_wait"
            )
        self.label = label
        self.text = text

    def __str__(self) -> str:
        return str(self.text)


class LimitScope(Enum):
    """Scope to which a limit applies: all requests, or a connection, namespace or tenant."""

    ALL = "all"
    CONNECTION = "connection"
    NAMESPACE = "namespace"
    TENANT = "tenant"


class PermitTooLargeError(ValueError):
    """A request is larger than a limit, so that waiting cannot help.

    Attributes:
        requested: The requested permits.
        limit: The exceeded limit.
        scope: The scope of the limit.
    """

    def __init__(self, requested: int, limit: int, scope: LimitScope = LimitScope.ALL) -> None:
        super().__init__(f"Requested permits={requested} is larger than maxPermits={limit}")
        self.requested = requested
        self.limit = limit
        self.scope = scope


def raised_anew(error: ErrorT) -> ErrorT:
    """Return a copy of a stored error, to be raised instead of the original.

    Raising an error stored on a request would attach a traceback whose frames refer to the request:
    a reference cycle that keeps a topic list alive until the garbage collector runs.
    """
    new = type(error).__new__(type(error), *error.args)
    new.__dict__.update(error.__dict__)
    return new
