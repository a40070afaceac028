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
def test_invalid_offload_policies_are_refused_with_the_reason(body: object, reason: str) -> None:
    with pytest.raises(RestError, match=reason):
        checked(body)


def test_a_missing_offload_key_has_its_default_and_a_null_has_no_value() -> None:
    read = offload_of({**FILES, EXTRA: None, BYTES: JsonNumber("7")})
    assert read is not None
    assert (read[THREADS], read[BYTES], EXTRA in read) == (2, 7, False)
    assert of_namespace({POLICIES: read}) == {**read, EXTRA: {}}


def test_the_driver_flags_show_the_kind_of_the_offload_driver() -> None:
    kinds = {
        driver: shown({"managedLedgerOffloadDriver": driver}) for driver in ("S3", "Filesystem")
    }
    assert kinds["S3"]["s3Driver"]
    assert not kinds["S3"]["fileSystemDriver"]
    assert kinds["Filesystem"]["fileSystemDriver"]


def test_legacy_offload_numbers_fill_values_missing_in_the_offload_policies() -> None:
    document = {"offload_threshold": 6, "offload_deletion_lag_ms": 8}
    own = with_old({BYTES: 5}, document)
    assert (own[BYTES], own["managedLedgerOffloadDeletionLagInMillis"]) == (5, 8)


def test_offload_policies_of_a_topic_override_its_namespace() -> None:
    document = {POLICIES: {THREADS: 8, EXTRA: {"a": "1", "c": "3"}}}
    found = merged({EXTRA: {"a": "2"}, BYTES: 7}, document)
    assert found is not None
    assert (found[THREADS], found[BYTES], found[EXTRA]) == (8, 7, {"a": "2", "c": "3"})
    assert merged(None, {}) is None
