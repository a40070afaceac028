"""Offload policies as values."""

import pytest

from broker.admin.resources.policies.placement.offload_values import (
    POLICIES,
    checked,
    merged,
    of_namespace,
    offload_of,
    shown,
    with_old,
)
from broker.policies.values import JsonNumber
from server.http import RestError

FILES = {"managedLedgerOffloadDriver": "filesystem"}
THREADS, EXTRA = "managedLedgerOffloadMaxThreads", "managedLedgerExtraConfigurations"
BYTES = "managedLedgerOffloadThresholdInBytes"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "The offloadPolicies must be specified"),
        ({}, "The driver is not supported, support value: S3,aws-s3,google-cloud-storage,"),
        ({"managedLedgerOffloadDriver": "aws-s3"}, "The bucket must be specified"),
    ],
)
def test_what_cannot_be_offloaded_to_is_refused(body: object, reason: str) -> None:
    with pytest.raises(RestError, match=reason):
        checked(body)


def test_what_is_left_out_has_its_default_and_null_has_none() -> None:
    read = offload_of({**FILES, EXTRA: None, BYTES: JsonNumber("7")})
    assert read is not None
    assert (read[THREADS], read[BYTES], EXTRA in read) == (2, 7, False)
    assert of_namespace({POLICIES: read}) == {**read, EXTRA: {}}


def test_the_kind_of_a_driver_is_shown() -> None:
    kinds = {
        driver: shown({"managedLedgerOffloadDriver": driver}) for driver in ("S3", "Filesystem")
    }
    assert kinds["S3"]["s3Driver"]
    assert not kinds["S3"]["fileSystemDriver"]
    assert kinds["Filesystem"]["fileSystemDriver"]


def test_numbers_beside_the_policies_count_where_those_have_none() -> None:
    document = {"offload_threshold": 6, "offload_deletion_lag_ms": 8}
    own = with_old({BYTES: 5}, document)
    assert (own[BYTES], own["managedLedgerOffloadDeletionLagInMillis"]) == (5, 8)


def test_what_a_topic_has_comes_before_its_namespaces() -> None:
    document = {POLICIES: {THREADS: 8, EXTRA: {"a": "1", "c": "3"}}}
    found = merged({EXTRA: {"a": "2"}, BYTES: 7}, document)
    assert found is not None
    assert (found[THREADS], found[BYTES], found[EXTRA]) == (8, 7, {"a": "2", "c": "3"})
    assert merged(None, {}) is None
