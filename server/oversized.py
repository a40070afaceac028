"""What a refusal says of a listing larger than a limit: its size, the limit, the key to raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.dual import LimitType
from limiter.errors import LimitScope

if TYPE_CHECKING:
    from limiter.errors import PermitTooLargeError

LIMIT_KEYS = {
    LimitType.HEAP_MEMORY: "maxTopicListInFlightHeapMemSizeMB",
    LimitType.DIRECT_MEMORY: "maxTopicListInFlightDirectMemSizeMB",
}
CAP_KEYS = {
    LimitScope.CONNECTION: "floodgateTopicListMaxBytesPerConnection",
    LimitScope.NAMESPACE: "floodgateTopicListMaxBytesPerNamespace",
    LimitScope.TENANT: "floodgateTopicListMaxBytesPerTenant",
}


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


def illegal_argument_text(error: PermitTooLargeError) -> str:
    """Return the text of the same refusal as a real broker or proxy gives it."""
    return f"java.lang.IllegalArgumentException: {error}"
