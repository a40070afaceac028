"""Texts that refuse a listing larger than a limit or a frame: size, limit, key to raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.errors import LimitScope
from server.configuration.limit_keys import CAP_KEYS, LIMIT_KEYS

if TYPE_CHECKING:
    from limiter.errors import PermitTooLargeError
    from limiter.memory.dual_limiter import LimitType

TOO_LARGE_FOR_A_FRAME = pb.NotAllowedError
"""The code of a refusal that repeating does not help: clients give up at once, and show its text.
After TooManyRequests, ServiceNotReady or MetadataError they repeat, as if for want of memory."""


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
