"""A memory bound for a process: a control group where possible, else RLIMIT_DATA.

``python -m tests.proof.memory.rooms GROUP|BYTES COMMAND...`` bounds itself and becomes the command.

Source: the kernel's admin guides to cgroup v1 (memory) and v2, getrlimit(2).
"""

import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from loadgen.places.server_process import ServerLaunch

_V2, _V1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
_SWAP = "memory.swap.max"
_LEAVING_SECONDS = 5.0
_RESERVED_BYTES = 300 * 1024 * 1024


@dataclass(frozen=True)
class Room:
    """A memory bound and its kernel counters.

    Attributes:
        kind: Kind of the bound, in words.
        limit_bytes: The bound.
        group: The control group; None with RLIMIT_DATA.
    """

    kind: str
    limit_bytes: int
    group: Path | None

    def kills(self) -> int | None:
        """Return the number of kernel kills in it; None if unknown."""
        if self.group is None:
            return None
        for name in ("memory.events", "memory.oom_control"):
            if (file := self.group / name).exists():
                lines = dict(line.split() for line in file.read_text().splitlines())
                return int(lines["oom_kill"])
        return None

    def peak_bytes(self) -> int | None:
        """Return the peak of memory in use; None if unknown."""
        if self.group is None:
            return None
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            if (file := self.group / name).exists():
                return int(file.read_text())
        return None


@contextmanager
def room(name: str, limit_bytes: int) -> Iterator[Room]:
    """Make a bound for a block; a control group is removed at its end."""
    for kind, top, limit in (
        ("cgroup v2", _V2, "memory.max"),
        ("cgroup v1", _V1, "memory.limit_in_bytes"),
    ):
        group = top / f"floodgate-{name}-{os.getpid()}"
        if _made(group, limit, limit_bytes):
            try:
                yield Room(kind, limit_bytes, group)
            finally:
                _remove(group)
            return
    # RLIMIT_DATA also counts memory reserved and never touched, as by allocators.
    yield Room("RLIMIT_DATA, with what is only reserved", limit_bytes + _RESERVED_BYTES, None)


def _made(group: Path, limit: str, limit_bytes: int) -> bool:
    try:
        group.mkdir()
    except OSError:
        return False
    try:
        # Without the kernel's memory control the folder has none of its files.
        _write(group / limit, limit_bytes)
        if (group / _SWAP).exists():
            _write(group / _SWAP, 0)
    except OSError:
        group.rmdir()
        return False
    return True


def _write(file: Path, value: int) -> None:
    with file.open("r+") as opened:
        opened.write(str(value))


def _remove(group: Path) -> None:
    """Remove a group after the kernel has released its last process."""
    give_up = time.monotonic() + _LEAVING_SECONDS
    while group.exists() and time.monotonic() < give_up:
        with suppress(OSError):
            group.rmdir()
        time.sleep(0.05)


@dataclass(frozen=True)
class LaunchInRoom(ServerLaunch):
    """Start of a server within a bound, effective before the program runs."""

    room: Room | None = None

    def command(self) -> list[str]:
        """Return the command line: a process that enters the bound and becomes the server."""
        assert self.room is not None
        where = str(self.room.group) if self.room.group else str(self.room.limit_bytes)
        return [sys.executable, "-m", "tests.proof.memory.rooms", where, *super().command()]


def main() -> None:
    """Enter a control group, or set RLIMIT_DATA; then run the command in this process."""
    where, *command = sys.argv[1:]
    if where.isdigit():
        resource.setrlimit(resource.RLIMIT_DATA, (int(where), int(where)))
    else:
        (Path(where) / "cgroup.procs").write_text(str(os.getpid()))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
