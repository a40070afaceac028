"""The schema version of a table, stored in the metadata of its Parquet files.

A missing column reads as null, so an added column needs no new version. A changed meaning does: a
reader refuses newer versions. A file without a version predates versions, or has another author.
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
    """Return the Parquet metadata that stores a schema version."""
    return {_KEY: str(version).encode()}


def why_too_new(metadata: Mapping[bytes, bytes] | None, known: int) -> str:
    """Return why a file's schema version cannot be read; an empty text if it can.

    A version newer than ``known`` cannot be read.
    """
    found = (metadata or {}).get(_KEY, b"0")
    if found.isdigit() and len(found) <= _MOST_DIGITS and int(found) <= known:
        return ""
    return (
        f"has version {shown(found)} of its schema, and this Floodgate reads {known}: read it with "
        "the one that wrote it, or a newer one"
    )
