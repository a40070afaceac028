"""A reader detects Parquet files of newer versions."""

import pytest

from proto.parquet_versions import version_metadata, why_too_new

KEY = b"floodgate.schema_version"


@pytest.mark.parametrize("metadata", [None, {}, {b"pandas": b"9"}, {KEY: b"1"}, {KEY: b"2"}])
def test_files_of_supported_or_unknown_versions_are_read(metadata: dict[bytes, bytes]) -> None:
    assert why_too_new(metadata, 2) == ""


@pytest.mark.parametrize("found", [b"3", b"", b"2.1", b"-1", b"9" * 5_000, b"\xff"])
def test_a_newer_schema_version_is_refused_with_a_short_message(found: bytes) -> None:
    said = why_too_new({KEY: found}, 2)
    assert "of its schema, and this Floodgate reads 2: read it with the one that" in said
    assert len(said) < 300


def test_a_schema_records_its_version() -> None:
    assert version_metadata(3) == {KEY: b"3"}
