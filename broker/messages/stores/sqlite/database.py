"""The file of a message database: tables, connections, errors, and temporary files."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

import google_crc32c

from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.own_files import make_own_files

if TYPE_CHECKING:
    from io import FileIO

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
PAGE_BYTES = 16 * 1024
_WAL_BYTES = 64 * 1024 * 1024
"""The size in bytes to which a grown write-ahead log is cut."""
RESERVE_BYTES = 8 * 1024 * 1024
"""Bytes of disk space that entries leave free for deletions.

Large transactions also need space to reuse deleted pages.
"""
_SMALL_BYTES = 256 * 1024
"""Bytes that a write needs in addition to its entries: for partly filled pages and inner pages."""
WRITER_CACHE_KIB, READER_CACHE_KIB = 16 * 1024, 2 * 1024

ENTRY_BITS = 32
"""Bits of the entry's number in a row's id, below the ledger's number.

Rows are therefore ordered without an index (a composite key was four times as slow).
"""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS store (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS topics (
    topic_id INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ledgers (
    ledger_id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, entries INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL, closed_at INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS cursors (
    topic_id INTEGER NOT NULL, name TEXT NOT NULL, state BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (topic_id, name));
CREATE TABLE IF NOT EXISTS properties (
    topic_id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (topic_id, name));
CREATE TABLE IF NOT EXISTS entries (
    row_id INTEGER PRIMARY KEY, head BLOB NOT NULL, data BLOB NOT NULL);
"""
_HEAD = Struct("<iQqI")
_SUMMED = Struct("<qiQq")


def head_of(row_id: int, data: bytes, digest: MessageDigest) -> bytes:
    """Return the ``head`` column of an entry's row: the digest, and a CRC32C of the whole row."""
    checksum = google_crc32c.extend(google_crc32c.value(_SUMMED.pack(row_id, *digest)), data)
    return _HEAD.pack(*digest, checksum)


def digest_in(row_id: int, head: object, data: object) -> MessageDigest | None:
    """Return the digest in an entry's row after comparing its checksum; None if damaged."""
    if not (isinstance(head, bytes) and isinstance(data, bytes) and len(head) == _HEAD.size):
        return None
    *digest, checksum = _HEAD.unpack(head)
    summed = google_crc32c.value(_SUMMED.pack(row_id, *digest))
    return MessageDigest(*digest) if google_crc32c.extend(summed, data) == checksum else None


def unchecked_digest(head: object) -> MessageDigest | None:
    """Return the digest in an entry's row, without reading and checking the entry's bytes.

    Return None if the digest is missing or damaged.
    """
    if not isinstance(head, bytes) or len(head) != _HEAD.size:
        return None
    return MessageDigest(*_HEAD.unpack(head)[:3])


def row_checksum(*values: object) -> int:
    """Return the CRC32C of a row in any table except ``entries``.

    The broker stores it with the row, because SQLite itself has no checksums.
    """
    parts: list[bytes] = []
    for one in values:
        # A single flipped bit turns bytes into text.
        parts += type(one).__name__.encode(), one if isinstance(one, bytes) else str(one).encode()
    return int(google_crc32c.value(b"\0".join(parts)))


def is_intact(row: tuple[object, ...]) -> bool:
    """Return True if a row in any table except ``entries`` matches its last column, a checksum."""
    return row_checksum(*row[:-1]) == row[-1]


FROM_A_COPY = "bring it back from a copy, without the -wal and -shm files beside it"
"""The remedy for a damaged database: a remaining log would be replayed into the copy."""
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of SQLite. UnicodeDecodeError quotes the contents of a damaged file."""


def is_damage(error: Exception) -> bool:
    """Return True if an error shows a damaged file, not a file that is unreadable for now."""
    if not isinstance(error, ERRORS):
        return False
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # Missing in decoding errors.
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_locked(error: Exception) -> bool:
    """Return True if an error shows that another process keeps the database locked."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def what_to_do(error: Exception) -> str:
    """Return the remedy for a damaged database, as the end of a sentence.

    Return an empty text for other errors.
    """
    if not is_damage(error):
        return ""
    return f"; {FROM_A_COPY}, or move it away to begin with an empty one"


class NoRoomError(sqlite3.OperationalError):
    """A refused write of entries, which would leave too little free space on the disk."""

    sqlite_errorcode = sqlite3.SQLITE_FULL

    def __init__(self) -> None:
        super().__init__("the disk is nearly full")


class DatabaseFile:
    """The file of a message database, locked so that only one process uses it.

    Args:
        path: The database file; its folder is created if missing.
        temporary: True to delete the file at the end; its writes need not reach the disk.
        fsync: True to write each transaction to the disk before it counts as committed.

    Raises:
        MessageStoreError: Another broker uses the file, or the file cannot be created.
    """

    def __init__(self, path: Path, *, temporary: bool, fsync: bool) -> None:
        self.path = path = path.resolve()  # SQLite resolves links too, so links share a lock.
        self.temporary = temporary
        self._synchronous = "OFF" if temporary else "FULL" if fsync else "NORMAL"
        try:
            make_own_files(path, path.with_name(f"{path.name}.lock"))
            self._lock = _locked(path)
        except OSError as error:
            if temporary:
                shutil.rmtree(path.parent, ignore_errors=True)
            reason = error.strerror or error
            raise MessageStoreError(f"the message database {path}: {reason}") from None

    def writer(self, max_pages: int = 0) -> sqlite3.Connection:
        """Open the connection for writing, and create missing tables.

        Args:
            max_pages: The largest number of pages of the file; 0 is no limit.

        Raises:
            sqlite3.Error: The file cannot be used.
            MessageStoreError: The file has an unknown format version.
        """
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            # Some builds overwrite deleted data with zeros, doubling the writes.
            connection.execute("PRAGMA secure_delete=OFF")
            connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
            connection.execute(f"PRAGMA cache_size={-WRITER_CACHE_KIB}")
            if max_pages:
                connection.execute(f"PRAGMA max_page_count={max_pages}")
            self._make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not version:
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            if not self.temporary:
                logger.info("the message database %s is new, and empty", self.path)
        elif version != FORMAT_VERSION:
            raise MessageStoreError(
                f"the message database {self.path} has format {version}; this version of "
                f"Floodgate reads format {FORMAT_VERSION}"
            )
        if not os.access(self.path, os.W_OK):  # SQLite would say so at the first message.
            raise MessageStoreError(f"the message database {self.path} may not be written")

    def reader(self) -> sqlite3.Connection:
        """Open a connection for reading, which neither waits for the writer nor blocks it.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA query_only=ON")
        connection.execute(f"PRAGMA cache_size={-READER_CACHE_KIB}")
        return connection

    @property
    def size_bytes(self) -> int:
        """The total bytes of the database file and its write-ahead log."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(one.stat().st_size for one in files if one.exists())

    def is_nearly_full(self, size_bytes: int) -> bool:
        """Return True if so little disk space is free that ``check_room`` must be called.

        The argument is the bytes of the entries in the next transaction.

        Raises:
            OSError: The database's folder is missing.
        """
        return self._free_bytes() < 4 * size_bytes + RESERVE_BYTES + 2 * _WAL_BYTES

    def check_room(self, connection: sqlite3.Connection, page_bytes: int) -> None:
        """Raise an error if the disk has too little free space for a transaction.

        New entries must leave a reserve of free space, which later deletions need. The write-ahead
        log needs space first; the file needs space when the log is copied into it. Without space
        for the copy, deletions would fail, too.

        Args:
            connection: The writing connection.
            page_bytes: The most bytes that the pages of the new entries can take.

        Raises:
            NoRoomError: The disk space is insufficient.
            sqlite3.Error: The log cannot be copied.
        """
        if self._is_short(connection, page_bytes):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if self._is_short(connection, page_bytes):
                raise NoRoomError

    def _is_short(self, connection: sqlite3.Connection, page_bytes: int) -> bool:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (unused_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
        in_log_bytes = max(0, int(pages) * PAGE_BYTES - self.path.stat().st_size)
        new_bytes = max(0, page_bytes - int(unused_pages) * PAGE_BYTES)
        least_bytes = max(page_bytes + _SMALL_BYTES, RESERVE_BYTES if page_bytes else 0)
        return self._free_bytes() < in_log_bytes + new_bytes + least_bytes

    def _free_bytes(self) -> int:
        disk = os.statvfs(self.path.parent)
        return int(disk.f_bavail * disk.f_frsize)

    def has_no_room(self, error: Exception) -> bool:
        """Return True if an error means that the disk or the database is full."""
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_FULL:
            return True
        if code & 0xFF != sqlite3.SQLITE_IOERR:
            return False
        # Growing the write-ahead log's index on a full disk fails with an I/O error.
        try:
            return self._free_bytes() < 1024 * 1024
        except OSError:
            return False  # The folder is missing.

    def release(self) -> None:
        """Release the database's lock, and delete a temporary database with its folder."""
        if self.temporary:
            shutil.rmtree(self.path.parent, ignore_errors=True)
        self._lock.close()


def _locked(path: Path) -> FileIO:
    """Lock and return a database's lock file; the kernel unlocks it when the process ends."""
    lock = open(path.with_name(path.name + ".lock"), "ab+", buffering=0)  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read(20).decode("ascii", "replace").strip() or "unknown"
        lock.close()
        if not isinstance(error, BlockingIOError):
            raise
        raise MessageStoreError(
            f"the message database {path} is in use by process {holder}; a database belongs to "
            "one broker"
        ) from None
    with suppress(OSError):  # On a full disk the lock holds without the text.
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
    return lock


_PREFIX = "floodgate-messages-"
DATABASE_NAME = "messages.db"


def temporary_database(place: Path) -> Path:
    """Return the path for a new temporary database, in a new folder of its own.

    Folders of killed brokers are deleted first.

    Raises:
        OSError: The folder cannot be created.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        _delete_left(folder)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)) / DATABASE_NAME


def _delete_left(folder: Path) -> None:
    """Delete the folder of a temporary database whose broker no longer runs.

    The lock file of such a broker is not locked.
    """
    try:
        with open(folder / f"{DATABASE_NAME}.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # An empty lock file belongs to a starting broker.
            if lock.read(1):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return
