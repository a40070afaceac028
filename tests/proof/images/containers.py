"""Commands in an image, as a container engine with a read-only root would run them.

They have a separate mount namespace, in which the image's root is read-only, with /proc, /dev, an
empty /tmp and the mounts; only the image's environment; and an unprivileged user. Network and
processes are the machine's: ports are free ports.
"""

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadgen.places.server_process import ServerLaunch, ServerProcess, await_ready, start, stop
from tests.proof.images.buildah import Image

USER = 10001
_READY_SECONDS = 120.0
_STOP_SECONDS = 60.0
_PATIENCE_SECONDS = 900.0


@dataclass(frozen=True)
class Container:
    """Runs commands in an image.

    Attributes:
        image: The image.
        mounts: Folders of this machine by the path in the container; writable if the folder
            permits.
    """

    image: Image
    mounts: Mapping[str, Path] = field(default_factory=dict)

    def command(self, words: Sequence[str]) -> list[str]:
        root = shlex.quote(str(self.image.root))
        lines = [f"mount --bind {root} {root}"]
        # An engine makes the mount points, too.
        lines += [f"mkdir -p {root}{shlex.quote(path)}" for path in self.mounts]
        # An engine gives a container its names, too.
        lines += [f"touch {root}/etc/hosts", f"mount --bind /etc/hosts {root}/etc/hosts"]
        lines += [f"mount -o remount,bind,ro {root}", f"mount -t proc proc {root}/proc"]
        lines += [f"mount --rbind /dev {root}/dev", f"mount -t tmpfs -o mode=1777 tmp {root}/tmp"]
        for path, folder in self.mounts.items():
            lines.append(f"mount --bind {shlex.quote(str(folder))} {root}{shlex.quote(path)}")
        variables = [f"{name}={value}" for name, value in self.image.environment.items()]
        place = self.image.config.get("WorkingDir") or "/"
        inside = ["env", "-i", f"--chdir={place}", *variables, *words]
        lines.append(f"exec chroot --userspec={USER}:{USER} {root} {shlex.join(inside)}")
        return ["unshare", "--mount", "--", "sh", "-ec", "\n".join(lines)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(words),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )


@dataclass(frozen=True)
class _ContainedLaunch(ServerLaunch):
    words: Sequence[str] = ()

    def command(self) -> list[str]:
        return list(self.words)


@dataclass
class Served:
    """A server in a container.

    Attributes:
        process: Its addresses.
        exit_code: After a SIGTERM; None before.
    """

    process: ServerProcess
    exit_code: int | None = None


@contextmanager
def serving(container: Container, role: str, words: Sequence[str], log: Path) -> Iterator[Served]:
    """Run a server until the block ends.

    Raises:
        ServerStartError: The server did not report ready.
    """
    launch = _ContainedLaunch(role, {}, log, words=container.command(words))
    with log.open("wb") as errors:
        process = start(launch, errors.fileno())
    try:
        served = Served(await_ready(process, launch, _READY_SECONDS))
        yield served
        stop(process, _STOP_SECONDS)
        served.exit_code = process.returncode
    finally:
        if process.returncode is None:
            stop(process, _STOP_SECONDS)
