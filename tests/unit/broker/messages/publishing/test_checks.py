"""Refused messages, and the sentences of the refusals."""

from dataclasses import replace
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import parse_metadata
from broker.messages.publishing.checks import (
    PublishRules,
    SendRefusal,
    refusal_of,
    refusal_of_claims,
    refusal_of_metadata,
    whatever_metadata,
)
from broker.policies.effective import DEFAULTS, EffectivePolicies
from proto.errors import RemoteProtocolError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.messages.producing import entry_bytes

UNBOUNDED = PublishRules()


def judged(
    policies: EffectivePolicies = DEFAULTS,
    rules: PublishRules = UNBOUNDED,
    payload: bytes = b"m",
    sent: dict[str, Any] | None = None,
    **metadata: Any,
) -> SendRefusal | None:
    data = entry_bytes(payload, **metadata)
    command = pb.CommandSend(producer_id=1, sequence_id=0, **(sent or {}))
    return refusal_of(command, data, parse_metadata(data), policies, rules, ManualClock(1000.0))


def test_a_message_without_violations_is_accepted() -> None:
    assert judged() is None


def test_an_unencrypted_message_is_refused_where_encryption_is_required() -> None:
    policies = replace(DEFAULTS, encryption_required=True)
    assert judged(policies) == (pb.MetadataError, "Messages must be encrypted")
    keys = [pb.EncryptionKeys(key="k", value=b"v")]
    assert judged(policies, encryption_keys=keys) is None


def test_the_message_size_policy_counts_metadata_and_exempts_chunks() -> None:
    # As recorded.
    policies = replace(DEFAULTS, max_message_bytes=1000)
    assert judged(policies, payload=b"x" * 990) == (
        pb.NotAllowedError,
        "Exceed maximum message size",
    )
    assert judged(policies, payload=b"x" * 900) is None
    assert judged(policies, payload=b"x" * 990, sent={"is_chunk": True}) is None


@pytest.mark.parametrize(("size", "refused"), [(100, False), (101, True)])
def test_a_payload_above_the_largest_message_size_is_refused(size: int, refused: bool) -> None:
    found = judged(rules=PublishRules(max_payload_bytes=100), payload=b"x" * size)
    assert (found is not None) is refused
    assert found is None or found.code == pb.NotAllowedError


@pytest.mark.parametrize(("deliver_at", "refused"), [(1_002_000, False), (1_002_001, True)])
def test_a_delivery_delay_above_the_maximum_is_refused(deliver_at: int, refused: bool) -> None:
    policies = replace(DEFAULTS, max_delivery_delay_ms=2000)
    found = judged(policies, deliver_at_time=deliver_at)
    text = "Exceeds max allowed delivery delay of 2000 milliseconds"
    assert found == ((pb.NotAllowedError, text) if refused else None)


def test_a_transactional_message_is_refused() -> None:
    found = judged(sent={"txnid_least_bits": 1, "txnid_most_bits": 1})
    assert found == (pb.NotAllowedError, "Transaction buffer disable!")


def test_profile_pulsar_reads_invalid_metadata_as_empty() -> None:
    data = entry_bytes(producer_name="p")
    assert whatever_metadata(data).producer_name == "p"
    assert whatever_metadata(b"\x00\x00\x00\x02\xff\xff") == pb.MessageMetadata()
    with pytest.raises(RemoteProtocolError):
        whatever_metadata(b"\x00\x00")


def claimed(
    payload: bytes = b"", policies: EffectivePolicies = DEFAULTS, **metadata: Any
) -> SendRefusal | None:
    data = entry_bytes(payload, **metadata)
    return refusal_of_claims(data, parse_metadata(data), policies, "p")


@pytest.mark.parametrize(
    ("count", "size", "packed", "believed"),
    [
        (1, 0, False, True),  # A message outside a batch counts as one, too.
        (3, 18, False, True),
        (4, 18, False, False),
        (0, 18, False, False),
        (-1, 18, False, False),
        (-(2**31), 18, False, False),
        (2**31 - 1, 5_000_000, False, False),
        (1_000_000, 30_000_000, True, True),
        (1_000_001, 30_000_000, True, False),
    ],
)
def test_a_message_count_beyond_the_batch_size_is_refused(count, size, packed, believed) -> None:
    said: dict[str, Any] = {"num_messages_in_batch": count}
    if packed:
        found = claimed(b"x" * 1_000, compression=pb.ZSTD, uncompressed_size=size, **said)
    else:
        found = claimed(b"x" * size, uncompressed_size=2**32 - 1, **said)
    text = f"A batch of {size} bytes cannot have num_messages_in_batch={count}"
    assert found == (None if believed else (pb.NotAllowedError, text))


@pytest.mark.parametrize(
    ("compression", "most"), [(pb.LZ4, 850), (pb.ZLIB, 3_440), (pb.ZSTD, 109_226), (pb.SNAPPY, 213)]
)
def test_a_message_count_beyond_the_compressed_batch_size_is_refused(
    compression: pb.CompressionType.ValueType, most: int
) -> None:
    said = {"compression": compression, "uncompressed_size": 2**32 - 1}
    assert claimed(bytes(20), num_messages_in_batch=most, **said) is None
    refused = claimed(bytes(20), num_messages_in_batch=most + 1, **said)
    assert refused is not None
    assert refused.code == pb.NotAllowedError


@pytest.mark.parametrize(("count", "believed"), [(1_000, True), (0, False), (2**31 - 1, False)])
def test_an_encrypted_batch_is_refused_only_for_an_absurd_message_count(
    count: int, believed: bool
) -> None:
    keys = [pb.EncryptionKeys(key="k", value=b"v")]
    found = claimed(b"secret", encryption_keys=keys, num_messages_in_batch=count)
    assert (found is None) is believed


def test_a_foreign_producer_name_is_refused_under_deduplication() -> None:
    deduplicated = replace(DEFAULTS, deduplication=True)
    assert claimed(producer_name="victim") is None
    assert claimed(policies=deduplicated) is None
    found = claimed(policies=deduplicated, producer_name="victim")
    assert found is not None
    assert found.code == pb.NotAllowedError


def test_metadata_above_its_size_bound_is_refused() -> None:
    rules = PublishRules(max_metadata_bytes=100)
    small, large = entry_bytes(b"x" * 200), entry_bytes(partition_key="k" * 100)
    assert refusal_of_metadata(small, rules) is None
    assert refusal_of_metadata(large, PublishRules()) is None
    found = refusal_of_metadata(large, rules)
    assert found is not None
    assert found.code == pb.NotAllowedError
    # Truncated input closes the connection, like all unreadable input.
    assert refusal_of_metadata(large[:-2], rules) is None
    assert refusal_of_metadata(b"", rules) is None
