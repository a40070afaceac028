"""Headers of a message that is read by REST."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from multidict import MultiMapping

import proto.PulsarApi_pb2 as pb
from broker.admin.resources.messages.reading import message_response
from broker.messages.entry import Entry
from broker.messages.metadata import digest_of, parse_metadata
from tests.support.messages.producing import entry_bytes

START = "1970-01-01T00:00:00Z"
KEYS = pb.EncryptionKeys(key="k", value=b"v")


def headers(**metadata: Any) -> MultiMapping[str]:
    data = entry_bytes(**metadata)
    entry = Entry(3, 4, data, digest_of(parse_metadata(data)))
    return message_response(entry, max_bytes=100).headers


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({}, {"PROPERTY": "{}", "Message-ID": "3:4"}),
        ({"properties": [pb.KeyValue(key="<", value="=")]}, {"PROPERTY": r'{"\u003c":"\u003d"}'}),
        ({"event_time": 0, "deliver_at_time": 0}, {"event-time": START, "deliver-at-time": START}),
        ({"schema_version": b"\0\1"}, {"Base64-schema-version": "AAE="}),
        ({"ordering_key": b"\0\1"}, {"Base64-ordering-key": "AAE="}),
        ({"compression": pb.NONE, "uncompressed_size": 7}, {"compression": "NONE"}),
        (
            {"num_chunks_from_msg": 3, "chunk_id": 1},
            {"PROPERTY-TOTAL-CHUNKS": "3", "PROPERTY-CHUNK-ID": "1", "chunk-id": "1"},
        ),
        (
            {"txnid_least_bits": 1, "txnid_most_bits": 2},
            {"txnid-least-bits": "1", "txnid-most-bits": "2", "txn-aborted": "false"},
        ),
        (
            {"encryption_keys": [KEYS], "encryption_algo": "a", "encryption_param": b"p"},
            {
                "Is-Encrypted": "true",
                "encryption-algo": "a",
                "Base64-encryption-param": "cA==",
                "Base64-encryption-keys": b64encode(KEYS.SerializeToString()).decode(),
            },
        ),
    ],
)
def test_metadata_are_shown_under_the_names_of_pulsar(
    metadata: Mapping[str, object], shown: Mapping[str, str]
) -> None:
    found = headers(**metadata)
    assert {name: found[f"X-Pulsar-{name}"] for name in shown} == shown


def test_each_cluster_of_replication_has_a_header() -> None:
    assert headers(replicate_to=["a", "b"]).getall("X-Pulsar-replicated-to") == ["a", "b"]


def test_the_size_of_a_batch_is_that_of_its_entry_without_the_metadata() -> None:
    plain, batch = headers(), headers(num_messages_in_batch=1)
    assert "X-Pulsar-batch-size" not in plain
    checksum, length, payload = 6, 4, len(b"m")
    assert batch["X-Pulsar-batch-size"] == str(checksum + length + payload)
