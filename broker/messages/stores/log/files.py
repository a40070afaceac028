"""The files of a log: all that the log store asks of a file system."""

from __future__ import annotations

import fcntl
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from broker.messages.managed_ledger import MessageStoreError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

LOCK_NAME = "lock"
# One writes and syncs, and one reads what is copied.
_THREADS = 2
IDENTITY_NAME = "identity"
_IDENTITY_BYTES = 32


class LogFile(Protocol):
    """A file that grows at its end."""

    def append(self, data: bytes) -> None:
        """Write all of some bytes at the end.

        Raises:
            OSError: Not all could be written.
        """

    def sync(self) -> None:
        """Return when the disk has all that was written before.

        Raises:
            OSError: It has not.
        """

    def pread(self, size: int, offset: int) -> bytes:
        """Return bytes from an offset on; fewer at the end."""

    def size(self) -> int:
        """Return how many bytes there are."""

    def truncate(self, size: int) -> None:
        """Cut off what stands behind the first ``size`` bytes."""

    def close(self) -> None:
        """Release the file."""


class LogFiles(Protocol):
    """A directory of such files.

    Attributes:
        executor: Runs calls that block; those of one file in any order.
    """

    executor: Executor

    def lock(self) -> None:
        """Keep every other process out until this one ends or releases it.

        Raises:
            MessageStoreError: Another one is in.
        """

    def release(self) -> None:
        """Let others in."""

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""

    def create(self, name: str) -> LogFile:
        """Create an empty file, which is there after a crash once ``sync`` has returned."""

    def open(self, name: str) -> LogFile:
        """Open a file that is there."""

    def unlink(self, name: str) -> None:
        """Delete a file."""

    def sync(self) -> None:
        """Return when the disk knows which files there are."""


class DiskFile:
    """A file on disk."""

    def __init__(self, path: Path, flags: int) -> None:
        self._descriptor = os.open(path, flags | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, data: bytes) -> None:
        """Write all of some bytes at the end."""
        written = os.write(self._descriptor, data)
        if written < len(data):
            rest = memoryview(data)
            while written < len(data):
                written += os.write(self._descriptor, rest[written:])

    def sync(self) -> None:
        """Return when the disk has all that was written before."""
        os.fdatasync(self._descriptor)

    def pread(self, size: int, offset: int) -> bytes:
        """Return bytes from an offset on; fewer at the end."""
        return os.pread(self._descriptor, size, offset)

    def size(self) -> int:
        """Return how many bytes there are."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        """Cut off what stands behind the first ``size`` bytes."""
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)


class DiskFiles:
    """A directory on disk; it is made when it is locked."""

    def __init__(self, directory: Path) -> None:
        self.executor: Executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="message-log")
        self._directory = directory
        self._lock: int | None = None

    def lock(self) -> None:
        """Keep every other process out.

        The lock is the kernel's: it ends with the process, and a process that is stopped keeps it.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / LOCK_NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise MessageStoreError(
                f"the message log {self._directory} is in use by process {holder}; "
                "a log belongs to one broker"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._lock = descriptor

    def release(self) -> None:
        """Let others in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self.executor.shutdown(wait=False)

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(name for name in os.listdir(self._directory) if name != LOCK_NAME)

    def create(self, name: str) -> LogFile:
        """Create an empty file."""
        return DiskFile(self._directory / name, os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> LogFile:
        """Open a file that is there."""
        return DiskFile(self._directory / name, 0)

    def unlink(self, name: str) -> None:
        """Delete a file."""
        (self._directory / name).unlink()

    def sync(self) -> None:
        """Return when the disk knows which files there are."""
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __str__(self) -> str:
        return str(self._directory)


def identity_of(files: LogFiles) -> str:
    """Return a name that stays with a locked directory; the first time it is made, and on disk.

    Brokers that share topics note by it who has the messages of a bundle.

    Raises:
        OSError: It cannot be read or made.
    """
    if IDENTITY_NAME in files.names():
        found = _read_identity(files)
        if len(found) == _IDENTITY_BYTES:
            return found
        # It was being made when the machine stopped: nobody has been told of it.
        files.unlink(IDENTITY_NAME)
    made = uuid.uuid4().hex
    file = files.create(IDENTITY_NAME)
    try:
        file.append(made.encode())
        file.sync()
    finally:
        file.close()
    files.sync()
    return made


def _read_identity(files: LogFiles) -> str:
    file = files.open(IDENTITY_NAME)
    try:
        return file.pread(_IDENTITY_BYTES, 0).decode("ascii", "replace")
    finally:
        file.close()
