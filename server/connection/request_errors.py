"""Exceptions that refuse a request, and the texts and commands that tell the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from limiter.errors import LimitScope, PermitAcquireRefusedError
from server.configuration.common import CAP_KEYS, LIMIT_KEYS

if TYPE_CHECKING:
    from limiter.errors import PermitAcquireError, PermitTooLargeError
    from limiter.memory.dual_limiter import LimitType

TOO_LARGE_FOR_A_FRAME = pb.NotAllowedError
"""Error code for a refusal that a retry cannot change: clients give up immediately, and show its
text. After TooManyRequests, ServiceNotReady or MetadataError they retry, as for lack of memory."""


class RequestError(Exception):
    """An exception by which a handler answers a request with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The error's text; Pulsar's own text if clients may depend on it.
        by_broker: True at a proxy if the broker refused the request, not the proxy.
    """

    def __init__(
        self, server_error: pb.ServerError.ValueType, message: str, *, by_broker: bool = False
    ) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message
        self.by_broker = by_broker

    def __str__(self) -> str:
        return f"{pb.ServerError.Name(self.server_error)}: {self.message}"


class UnansweredRequestError(Exception):
    """An exception by which profile pulsar leaves a request unanswered, as a real broker does.

    Every topic-list request of a namespace and mode is such a request once its first exceeded the
    heap limit: with a pattern that matches nothing, with a hash, and even after the namespace has
    shrunk. So is a partition query for the name ``-partition-0``.
    """


ErrorBuilder = Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand]


class ErrorForm(NamedTuple):
    """Builds error responses to one kind of request.

    Attributes:
        build: Builds the response for an error of this server.
        no_permit: The error for a request when no lookup permit is free.
        build_relayed: At a proxy, builds the response for an error of its broker.
    """

    build: ErrorBuilder
    no_permit: RequestError
    build_relayed: ErrorBuilder | None = None

    def command(self, request_id: int, error: RequestError) -> pb.BaseCommand:
        """Build the command that answers a request with an error."""
        relayed = self.build_relayed if error.by_broker else None
        return (relayed or self.build)(request_id, error.server_error, error.message)


def not_granted(error: PermitAcquireError | None, text: str) -> RequestError:
    """Return the error for a request to which the memory limiter granted no memory.

    Its text is the admission policy's own reason, or else ``text``.
    """
    own = isinstance(error, PermitAcquireRefusedError)
    return RequestError(pb.TooManyRequests, str(error) if own else text)


def oversized_text(what: str, error: PermitTooLargeError, limit_type: LimitType, whose: str) -> str:
    """Return the error text for an object that is larger than the whole memory limit.

    Args:
        what: The name of the oversized object, such as "heap estimate".
        error: The limiter's error, with the object's size and the exceeded limit.
        limit_type: The exceeded memory limit, heap or direct.
        whose: The server with the limit, such as "broker".
    """
    key = CAP_KEYS.get(error.scope, LIMIT_KEYS[limit_type])
    scope = "" if error.scope is LimitScope.ALL else f" for one {error.scope.value}"
    return (
        f"the {what} of {error.requested} bytes is larger than the {whose}'s limit of "
        f"{error.limit} bytes{scope}: raise {key}"
    )


def frame_text(size_bytes: int, limit_bytes: int) -> str:
    """Return the error text for a response larger than the largest allowed frame.

    Args:
        size_bytes: Size of the frame.
        limit_bytes: The largest size of a frame: maxMessageSize + 10,240.
    """
    return (
        f"the answer of {size_bytes} bytes is larger than the frame limit of {limit_bytes} bytes: "
        "raise maxMessageSize on broker and proxy, or ask with a pattern that keeps less"
    )


def illegal_argument_text(error: PermitTooLargeError) -> str:
    """Return a real broker's error text for a request of more memory than the limit."""
    return f"java.lang.IllegalArgumentException: {error}"
