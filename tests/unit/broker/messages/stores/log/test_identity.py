"""A log's name: made once, and on disk before anybody is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.stores.log.files import IDENTITY_NAME, DiskFiles, identity_of

if TYPE_CHECKING:
    from pathlib import Path


def locked(directory: Path) -> DiskFiles:
    files = DiskFiles(directory)
    files.lock()
    return files


def test_a_directory_keeps_its_name(tmp_path: Path) -> None:
    # Given
    files = locked(tmp_path / "a")
    name = identity_of(files)
    files.release()
    # Then
    assert identity_of(locked(tmp_path / "a")) == name
    assert identity_of(locked(tmp_path / "b")) != name


def test_a_name_that_was_not_written_as_a_whole_is_made_again(tmp_path: Path) -> None:
    # Given
    (tmp_path / IDENTITY_NAME).write_bytes(b"abc")
    # When
    name = identity_of(locked(tmp_path))
    # Then
    assert len(name) == 32
    assert (tmp_path / IDENTITY_NAME).read_text() == name
