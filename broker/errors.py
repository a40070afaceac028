"""Errors with which the broker refuses requests: their reasons, codes and texts."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import (
    TOO_LARGE_FOR_A_FRAME,
    RequestError,
    frame_text,
    illegal_argument_text,
    oversized_text,
)

if TYPE_CHECKING:
    from limiter.errors import PermitTooLargeError
    from limiter.memory.dual_limiter import LimitType
    from proto.names import NamespaceName


class Refusal(Enum):
    """The kind of reason to refuse a request; the value is the HTTP status of the response."""

    BAD_REQUEST = 400
    NOT_FOUND = 404
    NOT_ALLOWED = 405
    NOT_ACCEPTABLE = 406
    CONFLICT = 409
    PRECONDITION_FAILED = 412
    UNPROCESSABLE = 422


class RefusedError(Exception):
    """The broker refuses the requested creation, change or deletion.

    Attributes:
        refusal: The kind of refusal, with its HTTP status.
        reason: One sentence, the same as upstream's where clients may depend on it.
    """

    def __init__(self, refusal: Refusal, reason: str) -> None:
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason


def too_large(error: PermitTooLargeError, what: str, limit_type: LimitType) -> RequestError:
    """Return the error for a topic list above the memory limit, which waiting cannot help.

    The text names the listing's size, the limit and its configuration key.
    """
    return RequestError(pb.TooManyRequests, oversized_text(what, error, limit_type, "broker"))


def illegal_argument(error: PermitTooLargeError) -> RequestError:
    """Return a real broker's error for a topic list above the memory limit."""
    return RequestError(pb.MetadataError, illegal_argument_text(error))


def pulsar_no_namespace(namespace: NamespaceName) -> RequestError:
    """Return a real broker's error for listing a missing namespace (not only persistent topics)."""
    reason = "Namespace not found"
    if str(namespace).endswith("/"):
        reason = f"HTTP 500 Path(/admin/policies/{namespace}) is invalid"
    text = f"org.apache.pulsar.broker.web.RestException: {reason}"
    return RequestError(pb.MetadataError, text)


def too_large_for_a_frame(size_bytes: int, limit_bytes: int) -> RequestError:
    """Return the error for a response larger than the largest frame that clients accept.

    Both sizes are those of whole frames.
    """
    return RequestError(TOO_LARGE_FOR_A_FRAME, frame_text(size_bytes, limit_bytes))


TOO_MANY_LOOKUPS = RequestError(
    pb.TooManyRequests, "Failed due to too many pending lookup requests"
)
HEAP_LIMIT_EXCEEDED = "Failed due to heap memory limit exceeded"
NO_DIRECT_MEMORY = "Cannot acquire permits for direct memory"
