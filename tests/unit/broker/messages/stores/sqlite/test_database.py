"""The database file: owner, format, row checksums, meanings of errors."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.stores.sqlite.database import (
    FORMAT_VERSION,
    DatabaseFile,
    digest_in,
    head_of,
    is_intact,
    row_checksum,
    unchecked_digest,
)
from tests.support.stores.message_stores import sqlite_store

DIGEST = MessageDigest(-5, 2**64 - 1, -(2**63))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DatabaseFile]:
    file = DatabaseFile(tmp_path / "new" / "messages.db", temporary=False, fsync=False)
    yield file
    file.release()


# -- rows -------------------------------------------------------------------------------------


def test_an_entry_digest_is_read_back_from_its_head() -> None:
    head = head_of(7, b"data", DIGEST)
    assert digest_in(7, head, b"data") == unchecked_digest(head) == DIGEST


@pytest.mark.parametrize("at", range(24))
def test_an_altered_bit_in_any_byte_of_a_head_is_detected(at: int) -> None:
    head = bytearray(head_of(7, b"data", DIGEST))
    head[at] ^= 1
    assert digest_in(7, bytes(head), b"data") is None


@pytest.mark.parametrize("data", [b"date", b"dat", b"data\0", b"", None, "data", 5])
def test_altered_data_is_detected(data: object) -> None:
    assert digest_in(7, head_of(7, b"data", DIGEST), data) is None


def test_a_row_in_the_place_of_another_row_is_detected() -> None:
    assert digest_in(8, head_of(7, b"data", DIGEST), b"data") is None


@pytest.mark.parametrize(
    "row", [(2, "a"), (1, "b"), (12, ""), (1, b"a"), ("1", "a"), (1, None), (1.0, "a")]
)
def test_an_altered_catalog_row_does_not_match_its_checksum(row: tuple[object, ...]) -> None:
    checksum = row_checksum(1, "a")
    assert is_intact((1, "a", checksum))
    assert not is_intact((*row, checksum))


# -- the file ---------------------------------------------------------------------------------


def test_a_database_in_use_is_refused_with_the_process_of_its_owner(file: DatabaseFile) -> None:
    in_use = f"messages.db is in use by process {os.getpid()}; a database belongs to one broker"
    with pytest.raises(MessageStoreError, match=in_use):
        DatabaseFile(file.path, temporary=False, fsync=False)
    file.release()
    DatabaseFile(file.path, temporary=False, fsync=False).release()


def test_a_database_in_use_is_refused_through_a_symbolic_link(file: DatabaseFile) -> None:
    link = file.path.with_name("link.db")
    link.symlink_to(file.path)
    with pytest.raises(MessageStoreError, match="is in use by process"):
        DatabaseFile(link, temporary=False, fsync=False)


@pytest.mark.parametrize("temporary", [True, False])
def test_a_temporary_database_that_cannot_be_created_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, temporary: bool
) -> None:
    def no_descriptor(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("fcntl.flock", no_descriptor)
    with pytest.raises(MessageStoreError, match=r"messages\.db: Too many open files"):
        DatabaseFile(tmp_path / "own" / "messages.db", temporary=temporary, fsync=False)
    assert (tmp_path / "own").exists() is not temporary


async def test_a_folder_that_cannot_be_created_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MessageStoreError, match=r"file/messages\.db: (Not a directory|File exist)"):
        await sqlite_store(tmp_path / "file" / "messages.db").open()


async def test_a_directory_in_place_of_the_file_is_reported_without_damage_advice(tmp_path) -> None:
    (tmp_path / "messages.db").mkdir()
    with pytest.raises(MessageStoreError) as refused:
        await sqlite_store(tmp_path / "messages.db").open()
    assert str(refused.value).endswith("messages.db: Is a directory")


async def test_a_database_of_another_format_version_is_refused(file: DatabaseFile) -> None:
    connection = file.writer()
    connection.execute(f"PRAGMA user_version={FORMAT_VERSION + 1}")
    connection.close()
    file.release()
    with pytest.raises(MessageStoreError) as refused:
        await sqlite_store(file.path).open()
    assert str(refused.value) == (
        f"the message database {file.path} has format 2; this version of Floodgate reads format 1"
    )


@pytest.mark.parametrize(
    ("temporary", "fsync", "level"), [(True, False, 0), (False, False, 1), (False, True, 2)]
)
def test_the_sync_level_follows_the_temporary_and_fsync_options(
    tmp_path: Path, level: int, *, temporary: bool, fsync: bool
) -> None:
    file = DatabaseFile(tmp_path / "own" / "messages.db", temporary=temporary, fsync=fsync)
    connection = file.writer()
    assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    file.release()
    assert (tmp_path / "own").exists() is not temporary


def test_a_full_file_is_lack_of_room_and_another_error_is_not(file: DatabaseFile) -> None:
    connection = file.writer(max_pages=12)
    with pytest.raises(sqlite3.OperationalError) as full:
        connection.execute("INSERT INTO entries VALUES (1, X'', zeroblob(1000000))")
    assert file.has_no_room(full.value)
    with pytest.raises(sqlite3.OperationalError) as other:
        connection.execute("INSERT INTO nowhere VALUES (1)")
    assert not file.has_no_room(other.value)
    connection.close()


def test_an_error_of_a_database_in_a_deleted_folder_is_not_lack_of_room(file: DatabaseFile) -> None:
    shutil.rmtree(file.path.parent)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert not file.has_no_room(error)
    assert file.size_bytes == 0


def test_a_reader_connection_is_read_only(file: DatabaseFile) -> None:
    file.writer().close()
    reader = file.reader()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM entries")
    reader.close()
