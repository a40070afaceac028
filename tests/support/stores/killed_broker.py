"""``python -m tests.support.stores.killed_broker POINT NUMBER HOW MARK ...``: a broker that dies.

It is the broker with a few places of its message log exchanged for ones that send SIGKILL to their
own process the so-manieth time they are passed. ``HOW`` is ``kill``, or ``power``: then its files
lose first what was not synced, as on a machine without power. The file MARK is left behind by a
broker that died in this way. Segments are small, so that many are begun, copied and deleted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import broker.messages.stores.log.cleaner as cleaner
import broker.messages.stores.log.writer as writer
from broker.messages.stores.log.files import DiskFile, DiskFiles
from broker.messages.stores.log.managed_ledger import LogManagedLedger
from broker.messages.stores.log.records import CURSOR

import broker.messages.stores.open_store as opened
from broker.__main__ import main
from broker.subscriptions.subscription import Subscription
from broker.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.messages.stores.log.chunk import Chunk

SEGMENT_BYTES = 256 * 1024

POINTS = {
    "before-write": 120,
    "torn-write": 120,
    "behind-write": 120,
    "before-sync": 2,
    "behind-sync": 2,
    "before-confirm": 150,
    "behind-confirm": 150,
    "before-cursor-save": 8,
    "behind-cursor-save": 8,
    "before-cursor-write": 5,
    "behind-cursor-write": 5,
    "behind-seek": 2,
    "before-close": 3,
    "behind-close": 3,
    "behind-unlink": 1,
}
"""Each with how often a broker passes it in the first seconds; with fsync it syncs every write."""

NEVER = "never"


class Death:
    """The point at which this process ends."""

    def __init__(self, point: str, number: int, *, power: bool, mark: str) -> None:
        self.lock = threading.RLock()
        self.files: list[KilledFile] = []
        self._point, self._left, self._power, self._mark = point, number, power, mark

    def is_at(self, point: str) -> bool:
        """Count a passage of a point; true if it is the last one."""
        if point != self._point:
            return False
        with self.lock:
            self._left -= 1
            return self._left == 0

    def passed(self, point: str) -> None:
        """Die here, if it is here."""
        if self.is_at(point):
            self.die()

    def die(self) -> None:
        """End this process; nobody writes any more meanwhile."""
        self.lock.acquire()
        Path(self._mark).write_text(self._point)
        if self._power:
            for file in self.files:
                file.lose()
        os.kill(os.getpid(), signal.SIGKILL)


DEATH = Death(NEVER, 0, power=False, mark="")


class KilledFile(DiskFile):
    """A file of the log that knows what the disk has of it."""

    def __init__(self, path: Path, flags: int) -> None:
        super().__init__(path, flags)
        self._path: Path | None = path
        self._synced = self.size()
        # A new file is not known to the disk before its directory is synced.
        self.is_known = not flags & os.O_CREAT
        DEATH.files.append(self)

    def append(self, data: bytes) -> None:
        """Write, or die on the way."""
        with DEATH.lock:
            DEATH.passed("before-write")
            if DEATH.is_at("torn-write"):
                super().append(data[: len(data) // 2])
                DEATH.die()
            super().append(data)
            DEATH.passed("behind-write")

    def sync(self) -> None:
        """Sync, or die around it."""
        with DEATH.lock:
            DEATH.passed("before-sync")
            size = self.size()
            super().sync()
            self._synced = size
            DEATH.passed("behind-sync")

    def truncate(self, size: int) -> None:
        """Cut off the end."""
        super().truncate(size)
        self._synced = min(self._synced, size)

    def close(self) -> None:
        """Release the file."""
        super().close()
        DEATH.files.remove(self)

    def lose(self) -> None:
        """Lose what the disk does not have; a part of it may be there by chance."""
        assert self._path is not None
        if not self.is_known:
            self._path.unlink(missing_ok=True)
            return
        size = self.size()
        super().truncate(Random(size).randint(min(self._synced, size), size))


class KilledFiles(DiskFiles):
    """A directory of such files."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._place = directory

    def create(self, name: str) -> DiskFile:
        """Create a file."""
        return KilledFile(self._place / name, os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> DiskFile:
        """Open a file."""
        return KilledFile(self._place / name, 0)

    def unlink(self, name: str) -> None:
        """Delete a file, or die behind that."""
        super().unlink(name)
        DEATH.passed("behind-unlink")

    def sync(self) -> None:
        """Let the disk know the files."""
        created = list(DEATH.files)
        super().sync()
        for file in created:
            file.is_known = True


def _around(owner: type, name: str, before: str, behind: str) -> None:
    """Put points around a method."""
    method: Callable[..., object] = getattr(owner, name)

    def around(*args: object, **named: object) -> object:
        DEATH.passed(before)
        result = method(*args, **named)
        DEATH.passed(behind)
        return result

    setattr(owner, name, around)


def _with_cursors(write: Callable[..., None]) -> Callable[..., None]:
    """Put points around the writes that have cursors."""

    def around(self: writer.LogWriter, chunk: Chunk) -> None:
        has_cursor = any(key.kind == CURSOR for key in chunk.keys)
        if has_cursor:
            DEATH.passed("before-cursor-write")
        write(self, chunk)
        if has_cursor:
            DEATH.passed("behind-cursor-write")

    return around


def _exchange() -> None:
    vars(opened)["DiskFiles"] = KilledFiles
    vars(writer)["SEGMENT_BYTES"] = SEGMENT_BYTES
    vars(cleaner)["NEARLY_DEAD_BYTES"] = SEGMENT_BYTES // 4
    _around(LogManagedLedger, "stored", "before-confirm", "behind-confirm")
    _around(LogManagedLedger, "save_cursor", "before-cursor-save", "behind-cursor-save")
    _around(Subscriptions, "close", "before-close", "behind-close")
    _around(Subscription, "seek", "before-seek", "behind-seek")
    setattr(writer.LogWriter, "_write", _with_cursors(writer.LogWriter._write))  # noqa: B010 - mypy


if __name__ == "__main__":
    at, times, how, left_behind = sys.argv[1:5]
    del sys.argv[1:5]
    DEATH = Death(at, int(times), power=how == "power", mark=left_behind)
    _exchange()
    main()
