"""A small file system for a broker: an image that only the broker's namespace mounts."""

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadgen.places.server_process import ServerLaunch
from tests.proof.result import ProofError

MEBIBYTE = 1024 * 1024
_WRITE_BYTES = 64 * 1024
_BLOCK_BYTES = 4096
_FREE_SECONDS = 10.0
FILLER = "filler"
_MOUNTED = 'mount -o loop "$1" "$2" && shift 2 && exec "$@"'


@dataclass(frozen=True)
class SmallDisk:
    """An image of ext4, and its folder in the brokers' namespace."""

    image: Path
    place: Path

    def make(self, size_bytes: int) -> None:
        """Make an empty disk.

        Raises:
            ProofError: Mounting is not possible on this machine.
        """
        self.place.mkdir(parents=True, exist_ok=True)
        self.image.unlink(missing_ok=True)
        with self.image.open("wb") as file:
            file.truncate(size_bytes)
        _run("mkfs.ext4", "-q", "-m", "0", str(self.image))
        self.run("true")

    def run(self, *command: str) -> None:
        """Run a command that sees the disk, while no broker does.

        Raises:
            ProofError: Mounting is not possible on this machine.
        """
        self.wait_until_free()
        _run(*self.within(*command))
        self.wait_until_free()

    def wait_until_free(self) -> None:
        """Wait until the kernel has written the last mount's data.

        Raises:
            ProofError: The disk is still in use.
        """
        end = time.monotonic() + _FREE_SECONDS
        while _run("losetup", "--associated", str(self.image)):
            if time.monotonic() > end:
                raise ProofError(f"{self.image} is still mounted")
            time.sleep(0.05)

    def within(self, *command: str) -> list[str]:
        """Return the command line of a command with exclusive sight of the disk."""
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNTED, "sh"]
        return [*words, str(self.image), str(self.place), *command]

    def seen_by(self, pid: int) -> Path:
        """Return this process's path to the disk of a broker."""
        return Path(f"/proc/{pid}/root", *self.place.parts[1:])


@dataclass(frozen=True)
class SmallDiskLaunch(ServerLaunch):
    """The start of a broker that sees a small disk."""

    disk: SmallDisk | None = None

    def command(self) -> list[str]:
        """Return its command line, once the disk is free."""
        assert self.disk is not None
        self.disk.wait_until_free()
        return self.disk.within(*super().command())


def fill(disk: Path, left_blocks: int) -> None:
    """Fill a disk up to a few blocks."""
    with (disk / FILLER).open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(_WRITE_BYTES))
    with (disk / FILLER).open("ab", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(bytes(_BLOCK_BYTES))
        os.fsync(file.fileno())
        file.truncate(max(0, file.tell() - left_blocks * _BLOCK_BYTES))
        os.fsync(file.fileno())


def empty(disk: Path) -> None:
    """Free the disk."""
    (disk / FILLER).unlink(missing_ok=True)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise ProofError(f"{command[0]} cannot be run: {error}") from None
    if done.returncode:
        raise ProofError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout
