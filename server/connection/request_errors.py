"""The errors of requests: how a handler refuses one, the texts, the commands that carry them."""

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
"""The code of a refusal that repeating does not help: clients give up at once, and show its text.
After TooManyRequests, ServiceNotReady or MetadataError they repeat, as if for want of memory."""


class RequestError(Exception):
    """The request is answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The text; upstream's own where clients may know it.
        by_broker: At a proxy: the broker refused, and not the proxy or the way between them.
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
    """Profile pulsar: the request is never answered, as recorded of a real broker and proxy.

    So is every listing of a namespace and mode whose first one exceeded the heap limit: with a
    pattern that keeps nothing, with a hash, and also after the namespace has shrunk. And so is a
    partition query for a name that is but ``-partition-0``.
    """


ErrorBuilder = Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand]


class ErrorForm(NamedTuple):
    """The commands by which the errors of one kind of request reach the client.

    Attributes:
        build: Builds the command of an error of this server.
        no_permit: The error of a request that finds no lookup permit.
        build_relayed: At a proxy: builds the command of an error that the broker answered.
    """

    build: ErrorBuilder
    no_permit: RequestError
    build_relayed: ErrorBuilder | None = None

    def command(self, request_id: int, error: RequestError) -> pb.BaseCommand:
        """Build the answer to a request that failed."""
        relayed = self.build_relayed if error.by_broker else None
        return (relayed or self.build)(request_id, error.server_error, error.message)


def not_granted(error: PermitAcquireError | None, text: str) -> RequestError:
    """Return the refusal of a request that got no memory: the policy's own reason, or ``text``."""
    own = isinstance(error, PermitAcquireRefusedError)
    return RequestError(pb.TooManyRequests, str(error) if own else text)


def oversized_text(what: str, error: PermitTooLargeError, limit_type: LimitType, whose: str) -> str:
    """Return the sentence of a refusal.

    Args:
        what: What was too large; "heap estimate".
        error: Says how large it was, and which limit it exceeds.
        limit_type: The budget that refused it.
        whose: Who has the limit; "broker".
    """
    key = CAP_KEYS.get(error.scope, LIMIT_KEYS[limit_type])
    scope = "" if error.scope is LimitScope.ALL else f" for one {error.scope.value}"
    return (
        f"the {what} of {error.requested} bytes is larger than the {whose}'s limit of "
        f"{error.limit} bytes{scope}: raise {key}"
    )


def frame_text(size_bytes: int, limit_bytes: int) -> str:
    """Return the sentence for an answer that no client takes.

    Args:
        size_bytes: Of the whole frame.
        limit_bytes: What a whole frame may have: maxMessageSize and 10,240.
    """
    return (
        f"the answer of {size_bytes} bytes is larger than the frame limit of {limit_bytes} bytes: "
        "raise maxMessageSize on broker and proxy, or ask with a pattern that keeps less"
    )


def illegal_argument_text(error: PermitTooLargeError) -> str:
    """Return the text of the same refusal as a real broker or proxy gives it."""
    return f"java.lang.IllegalArgumentException: {error}"
