"""Values of offload policies: parsed from JSON, shown with defaults, and merged.

The policies are stored and shown for administrators; nothing is offloaded.

Source: upstream OffloadPoliciesImpl; recorded answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.policies.values import (
    Member,
    boxed,
    given,
    long_number,
    number,
    object_by_name,
    object_of,
    one_of,
    schema_of,
    text,
    texts_by_name,
    without_null,
)
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping

POLICIES = "offload_policies"
THRESHOLD, SECONDS, LAG = (
    "managedLedgerOffloadThresholdInBytes",
    "managedLedgerOffloadThresholdInSeconds",
    "managedLedgerOffloadDeletionLagInMillis",
)
OLD = {
    "offload_threshold": THRESHOLD,
    "offload_threshold_in_seconds": SECONDS,
    "offload_deletion_lag_ms": LAG,
}
"""Old keys of numbers, outside a new namespace's offload policies, and the keys inside the
policies. The next change moves the numbers into the offload policies."""

_DRIVER, _BUCKET = "managedLedgerOffloadDriver", "managedLedgerOffloadBucket"
_EXTRA = "managedLedgerExtraConfigurations"
_MEGABYTE = 1024 * 1024
_GCS, _FILES = "google-cloud-storage", "filesystem"
_DRIVERS = ("S3", "aws-s3", _GCS, _FILES, "azureblob", "aliyun-oss")
_S3_DRIVERS = ("s3", "aws-s3", "aliyun-oss")


def _texts(value: object) -> dict[str, str]:
    return texts_by_name(without_null(object_by_name(value)))


_number, _long = boxed(number), boxed(long_number)
_FIELDS = (
    Member("offloadersDirectory", text, "./offloaders"),
    Member(_DRIVER, text),
    Member("managedLedgerOffloadMaxThreads", _number, 2),
    Member("managedLedgerOffloadReadThreads", _number, 2),
    Member("managedLedgerOffloadPrefetchRounds", _number, 1),
    Member(SECONDS, _long),
    Member(THRESHOLD, _long),
    Member(LAG, _long),
    Member(
        "managedLedgerOffloadedReadPriority", one_of(("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST"))
    ),
    Member(_EXTRA, given(_texts), {}),
    Member("s3ManagedLedgerOffloadRegion", text),
    Member("s3ManagedLedgerOffloadBucket", text),
    Member("s3ManagedLedgerOffloadServiceEndpoint", text),
    Member("s3ManagedLedgerOffloadMaxBlockSizeInBytes", _number, 64 * _MEGABYTE),
    Member("s3ManagedLedgerOffloadReadBufferSizeInBytes", _number, _MEGABYTE),
    Member("s3ManagedLedgerOffloadCredentialId", text),
    Member("s3ManagedLedgerOffloadCredentialSecret", text),
    Member("s3ManagedLedgerOffloadRole", text),
    Member("s3ManagedLedgerOffloadRoleSessionName", text, "pulsar-s3-offload"),
    Member("gcsManagedLedgerOffloadRegion", text),
    Member("gcsManagedLedgerOffloadBucket", text),
    Member("gcsManagedLedgerOffloadMaxBlockSizeInBytes", _number, 128 * _MEGABYTE),
    Member("gcsManagedLedgerOffloadReadBufferSizeInBytes", _number, _MEGABYTE),
    Member("gcsManagedLedgerOffloadServiceAccountKeyFile", text),
    Member("fileSystemProfilePath", text),
    Member("fileSystemURI", text),
    Member(_BUCKET, text),
    Member("managedLedgerOffloadRegion", text),
    Member("managedLedgerOffloadServiceEndpoint", text),
    Member("managedLedgerOffloadMaxBlockSizeInBytes", _number),
    Member("managedLedgerOffloadReadBufferSizeInBytes", _number),
)
_DEFAULTS = {field.name: field.default for field in _FIELDS if field.default is not None}
BODY = schema_of(object_of(*_FIELDS))
"""The JSON schema of parsed policies."""


def offload_of(value: object) -> dict[str, Any] | None:
    """Parse offload policies from JSON; return None for null.

    Missing members have defaults; null members are left out.
    """
    if value is None:
        return None
    members = object_by_name(value)
    read = {
        one.name: one.read(members[one.name]) if one.name in members else one.default
        for one in _FIELDS
    }
    return {name: one for name, one in read.items() if one is not None}


def checked(value: object) -> dict[str, Any]:
    """Parse offload policies from JSON, and refuse policies that a real broker refuses.

    Raises:
        RestError: The body is empty, or driver or bucket is missing.
        BadBodyError: A member has the wrong type.
    """
    policies = offload_of(value)
    if policies is None:
        raise RestError(412, "The offloadPolicies must be specified for namespace offload.")
    driver = policies.get(_DRIVER, "").lower()
    if driver not in map(str.lower, _DRIVERS):
        names = ",".join(_DRIVERS)
        raise RestError(412, f"The driver is not supported, support value: {names}")
    if not any(policies.get(bucket) for bucket in _buckets(driver)) and driver != _FILES:
        raise RestError(412, "The bucket must be specified for namespace offload.")
    return policies


def _buckets(driver: str) -> tuple[str, ...]:
    if driver in _S3_DRIVERS:
        return _BUCKET, "s3ManagedLedgerOffloadBucket"
    return (_BUCKET, "gcsManagedLedgerOffloadBucket") if driver == _GCS else (_BUCKET,)


def shown(policies: Mapping[str, Any]) -> dict[str, Any]:
    """Return offload policies in the form and order of responses, with the driver's type."""
    driver = policies.get(_DRIVER, "").lower()
    return {field.name: policies[field.name] for field in _FIELDS if field.name in policies} | {
        "s3Driver": driver in _S3_DRIVERS,
        "gcsDriver": driver == _GCS,
        "fileSystemDriver": driver == _FILES,
    }


def of_namespace(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a namespace's stored offload policies with defaults, or None if not set."""
    kept = document.get(POLICIES)
    return None if kept is None else {**_DEFAULTS, **kept}


def with_old(policies: Mapping[str, Any] | None, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return offload policies, completed with numbers stored under old names and defaults.

    Args:
        policies: The offload policies, if any.
        document: The policies set for the namespace.
    """
    numbers = {name: document[key] for key, name in OLD.items() if document.get(key) is not None}
    return {**_DEFAULTS, **numbers, **(policies or {})}


def merged(
    of_topic: Mapping[str, Any] | None, document: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the effective offload policies of a topic, or None if nothing is set.

    Args:
        of_topic: The topic's own offload policies, if set.
        document: The policies set for the namespace.
    """
    own = of_namespace(document)
    if of_topic is None and own is None and not any(key in document for key in OLD):
        return None
    base = with_old(own, document)
    extra = base[_EXTRA] | (of_topic or {}).get(_EXTRA, {})
    return {**base, **(of_topic or {}), _EXTRA: extra}
