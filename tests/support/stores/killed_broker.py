"""``python -m tests.support.stores.killed_broker POINT NUMBER ...``: a broker that kills itself.

It is the broker with the files of its message log exchanged for files that send SIGKILL to their
own process at a named point: before or behind the so-manieth write, or in the middle of it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import broker.messages.stores.open_store as opened
from broker.__main__ import main
from broker.messages.stores.log.files import DiskFile, DiskFiles

if TYPE_CHECKING:
    from pathlib import Path

POINTS = ("before-write", "torn-write", "behind-write", "behind-sync")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KilledFile(DiskFile):
    """A file of the log whose writes are counted."""

    point = ""
    left = 0

    def append(self, data: bytes) -> None:
        """Write, or die on the way."""
        is_last = self._is_last(self.point != "behind-sync")
        if is_last and self.point == "before-write":
            _die()
        if is_last and self.point == "torn-write":
            super().append(data[: len(data) // 2])
            _die()
        super().append(data)
        if is_last:
            _die()

    def sync(self) -> None:
        """Sync, or die behind it."""
        super().sync()
        if self._is_last(self.point == "behind-sync"):
            _die()

    @staticmethod
    def _is_last(counts: bool) -> bool:
        KilledFile.left -= counts
        return counts and KilledFile.left == 0


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


if __name__ == "__main__":
    KilledFile.point, KilledFile.left = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    vars(opened)["DiskFiles"] = KilledFiles
    main()
