"""Permitted lines of a file of topics, and line numbers."""

from pathlib import Path

import pytest

from broker.imports import files as topic_files
from broker.imports.files import ImportFailedError, read_rows


def read(path: Path, content: bytes) -> list[tuple[int, bytes]]:
    """Return numbers and names of lines that hold a topic."""
    path.write_bytes(content)
    found = []
    for rows in read_rows(path):
        names = rows.table["topic"].cast("binary").to_pylist()
        found += zip(rows.numbers.tolist(), names, strict=True)
    return found


@pytest.mark.parametrize("batch_bytes", [1, 8, 8_000_000])
def test_comments_and_blank_lines_are_skipped_but_numbered(
    tmp_path, monkeypatch, batch_bytes
) -> None:
    monkeypatch.setattr(topic_files, "TEXT_BYTES_PER_BATCH", batch_bytes)
    content = b'\xef\xbb\xbf# a list\r\n\r\none\n   # indented\n \t\n"two"\r\n#\nthree # not one'
    assert read(tmp_path / "t", content) == [(3, b"one"), (6, b"two"), (8, b"three # not one")]


def test_white_space_is_stripped_even_beside_a_line_that_is_not_utf8(tmp_path: Path) -> None:
    content = '\u00a0"one"\u3000\n'.encode() + b' "caf\xe9" \n# caf\xe9\n'
    assert read(tmp_path / "t", content) == [(1, b"one"), (2, b"caf\xe9")]


def test_a_file_with_a_nul_byte_is_refused_as_not_text(tmp_path: Path) -> None:
    with pytest.raises(ImportFailedError) as caught:
        read(tmp_path / "t", b"\x1f\x8b\x08\x00")
    assert str(caught.value) == f"{tmp_path}/t is neither Parquet nor UTF-8 text"
