"""Texts of refusals, naming size, limit and key; and the commands carrying the texts."""

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.errors import (
    LimitScope,
    PermitAcquireRefusedError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.memory.dual_limiter import LimitType
from proto.commands import error_command, lookup_failed
from server.connection.request_errors import (
    ErrorForm,
    RequestError,
    illegal_argument_text,
    not_granted,
    oversized_text,
)

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
FULL = RequestError(pb.TooManyRequests, "full")
OWN, RELAYED = (
    RequestError(pb.MetadataError, "text", by_broker=by_broker) for by_broker in (False, True)
)


def test_an_error_relayed_from_a_broker_may_have_a_separate_command() -> None:
    form = ErrorForm(error_command, FULL, build_relayed=lookup_failed)
    assert form.command(7, OWN) == error_command(7, pb.MetadataError, "text")
    assert form.command(7, RELAYED) == lookup_failed(7, pb.MetadataError, "text")


def test_without_a_separate_command_own_and_relayed_errors_are_equal() -> None:
    form = ErrorForm(lookup_failed, FULL)
    assert form.command(7, OWN) == form.command(7, RELAYED)


def test_an_error_names_its_code_in_the_log() -> None:
    assert str(OWN) == "MetadataError: text"


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
def test_an_oversized_response_names_the_key_of_the_exceeded_limit(
    limit_type, scope, ending
) -> None:
    error = PermitTooLargeError(200, 100, scope)
    text = oversized_text("response", error, limit_type, "broker")
    assert text == f"the response of 200 bytes is larger than the broker's limit of {ending}"


def test_the_shipped_text_of_an_oversized_response_is_as_recorded() -> None:
    text = illegal_argument_text(PermitTooLargeError(1_512_890, 1_048_576))
    assert text == (
        "java.lang.IllegalArgumentException: Requested permits=1512890 is larger than "
        "maxPermits=1048576"
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermitAcquireRefusedError("too_late", "It would be too late"), "It would be too late"),
        (PermitAcquireTimeoutError(25.0), "no memory"),
        (None, "no memory"),
    ],
)
def test_a_refusal_has_the_reason_of_the_policy_or_else_the_default_message(error, told) -> None:
    refusal = not_granted(error, "no memory")
    assert (refusal.server_error, refusal.message) == (pb.TooManyRequests, told)
