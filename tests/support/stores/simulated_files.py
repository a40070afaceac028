"""Files of a message log that can lose power, tear a write, or be full."""

from __future__ import annotations

import errno
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING

from broker.messages.managed_ledger import MessageStoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


class SimulatedFile:
    """A file in memory that knows what the disk has of it."""

    def __init__(self, files: SimulatedFiles, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.synced = bytes(content)
        self._files = files

    def append(self, data: bytes) -> None:
        """Write, unless the files are to fail now."""
        self._files.writes += 1
        if self._files.writes == self._files.tear_write:
            self.content += data[: len(data) // 2]
            raise OSError(errno.EIO, "torn")
        if self._files.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.content += data
        self._files.reached("written")

    def sync(self) -> None:
        """Let the disk have it."""
        if self._files.fails_to_sync:
            raise OSError(errno.EIO, "not synced")
        self.synced = bytes(self.content)
        self._files.reached("synced")

    def pread(self, size: int, offset: int) -> bytes:
        """Read."""
        return bytes(self.content[offset : offset + size])

    def size(self) -> int:
        """Return how many bytes there are."""
        return len(self.content)

    def truncate(self, size: int) -> None:
        """Cut off the end."""
        del self.content[size:]

    def close(self) -> None:
        """Nothing is to be released."""


class AtOnce(Executor):
    """Runs at once what would block, so that a history can be repeated."""

    def submit(self, function: Callable[..., object], /, *args: object) -> Future[object]:
        """Run it."""
        done: Future[object] = Future()
        try:
            done.set_result(function(*args))
        except Exception as error:  # noqa: BLE001 - handed to who asked
            done.set_exception(error)
        return done


class SimulatedFiles:
    """A directory in memory.

    Attributes:
        writes: Writes so far.
        tear_write: The write that is torn, and fails.
        is_full: Every write fails.
        fails_to_sync: Every sync fails.
        fails_to_unlink: No file can be deleted.
        on_reached: Called with "written" or "synced" behind each.
    """

    def __init__(self) -> None:
        self.executor = AtOnce()
        self.writes = 0
        self.tear_write = 0
        self.is_full = False
        self.fails_to_sync = False
        self.fails_to_unlink = False
        self.on_reached: Callable[[str], None] | None = None
        self.files: dict[str, SimulatedFile] = {}
        self._on_disk: dict[str, SimulatedFile] = {}
        self._is_locked = False

    def reached(self, point: str) -> None:
        """Tell a test where the store is."""
        if self.on_reached is not None:
            self.on_reached(point)

    def after_kill(self) -> SimulatedFiles:
        """Return the files that there are when the process dies now: the system keeps its own."""
        return self._with({name: bytes(file.content) for name, file in self.files.items()})

    def after_power_loss(self, random: Random) -> SimulatedFiles:
        """Return what a disk has when power fails now.

        What was synced is there, and of what was not a part that nobody knows; a directory that was
        not synced knows its old files.
        """
        known = self.files if random.random() < 0.5 else self._on_disk
        return self._with({name: _after_loss(file, random) for name, file in known.items()})

    @staticmethod
    def _with(contents: dict[str, bytes]) -> SimulatedFiles:
        copy = SimulatedFiles()
        copy.files = {name: SimulatedFile(copy, content) for name, content in contents.items()}
        copy.sync()
        return copy

    def lock(self) -> None:
        """Let nobody else in."""
        if self._is_locked:
            raise MessageStoreError("the message log is in use")
        self._is_locked = True

    def release(self) -> None:
        """Let others in."""
        self._is_locked = False

    def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(self.files)

    def create(self, name: str) -> SimulatedFile:
        """Create an empty file."""
        assert name not in self.files
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.files[name] = SimulatedFile(self)
        return self.files[name]

    def open(self, name: str) -> SimulatedFile:
        """Open a file."""
        return self.files[name]

    def unlink(self, name: str) -> None:
        """Delete a file."""
        if self.fails_to_unlink:
            raise OSError(errno.EIO, "not deleted")
        del self.files[name]

    def sync(self) -> None:
        """Let the disk know the files."""
        if self.fails_to_sync:
            raise OSError(errno.EIO, "not synced")
        self._on_disk = dict(self.files)

    def __str__(self) -> str:
        return "/simulated"


def _after_loss(file: SimulatedFile, random: Random) -> bytes:
    """Return what is left: the end that was not synced is there in part, or torn."""
    synced, rest = file.synced, bytearray(file.content[len(file.synced) :])
    del rest[random.randint(0, len(rest)) :]
    if rest and random.random() < 0.5:
        start = random.randrange(len(rest))
        end = random.randint(start, len(rest))
        rest[start:end] = bytes(end - start)
    return synced + bytes(rest)
