"""The version of a table's schema, which Parquet files carry in their metadata.

A column that a file lacks reads as null, so one more is no new version. What a column means decides
the version: a reader refuses newer ones. A file without a version is older than versions, or
somebody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.invalid_rows import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPICS_VERSION = 1
_KEY = b"floodgate.schema_version"
_MOST_DIGITS = 9


def version_metadata(version: int) -> dict[bytes, bytes]:
    """Return the metadata of a schema of this version."""
    return {_KEY: str(version).encode()}


def why_too_new(metadata: Mapping[bytes, bytes] | None, known: int) -> str:
    """Return what a refusal says of a file of a newer version than this; empty if it is none."""
    found = (metadata or {}).get(_KEY, b"0")
    if found.isdigit() and len(found) <= _MOST_DIGITS and int(found) <= known:
        return ""
    return (
        f"has version {shown(found)} of its schema, and this Floodgate reads {known}: read it with "
        "the one that wrote it, or a newer one"
    )
