"""A refusal of what is larger than a limit names the size, the limit and the key to raise."""

from __future__ import annotations

import pytest

from limiter.errors import LimitScope, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from server.connection.refusal_texts import illegal_argument_text, oversized_text

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY


@pytest.mark.parametrize(
    ("limit_type", "scope", "ending"),
    [
        (HEAP, LimitScope.ALL, "100 bytes: raise maxTopicListInFlightHeapMemSizeMB"),
        (DIRECT, LimitScope.ALL, "100 bytes: raise maxTopicListInFlightDirectMemSizeMB"),
        (
            HEAP,
            LimitScope.CONNECTION,
            "100 bytes for one connection: raise floodgateTopicListMaxBytesPerConnection",
        ),
        (
            DIRECT,
            LimitScope.NAMESPACE,
            "100 bytes for one namespace: raise floodgateTopicListMaxBytesPerNamespace",
        ),
        (
            HEAP,
            LimitScope.TENANT,
            "100 bytes for one tenant: raise floodgateTopicListMaxBytesPerTenant",
        ),
    ],
)
def test_the_key_is_that_of_the_limit_that_refused(
    limit_type: LimitType, scope: LimitScope, ending: str
) -> None:
    error = PermitTooLargeError(200, 100, scope)
    text = oversized_text("response", error, limit_type, "broker")
    assert text == f"the response of 200 bytes is larger than the broker's limit of {ending}"


def test_the_shipped_text_is_as_recorded() -> None:
    text = illegal_argument_text(PermitTooLargeError(1_512_890, 1_048_576))
    assert text == (
        "java.lang.IllegalArgumentException: Requested permits=1512890 is larger than "
        "maxPermits=1048576"
    )
