"""Images without a container engine: buildah with chroot isolation, on a debootstrap base.

One folder, named by the caller, holds the store of layers and all mounts. The base is Debian's
Python under the Dockerfile's base name, because image registries are not reachable everywhere; all
layers above the base are the same.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from tests.proof.result import ProofError

NEEDED = ("buildah", "debootstrap", "unshare", "chroot")
BASE = "docker.io/library/python:3.11-slim-bookworm"
_RELEASE = "bookworm"
_PACKAGES = "python3,python3-pip,ca-certificates"
_CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_STEP_SECONDS = 1500.0


def missing_tools() -> list[str]:
    """Return the tools missing on this machine."""
    return [name for name in NEEDED if shutil.which(name) is None]


@dataclass(frozen=True)
class Image:
    """An image mounted for reading.

    Attributes:
        name: Its tag.
        root: Its root file system.
        config: Its declared configuration: Cmd, Env, User, Healthcheck, ...
    """

    name: str
    root: Path
    config: dict[str, Any]

    @property
    def environment(self) -> dict[str, str]:
        return dict(text.split("=", 1) for text in self.config["Env"])

    def size_bytes(self) -> int:
        """Return the size of its files; a file with several names counts once."""
        files = (
            status for path in self.root.rglob("*") if S_ISREG((status := path.lstat()).st_mode)
        )
        return sum({status.st_ino: status.st_size for status in files}.values())


class Buildah:
    """The images in one folder.

    Args:
        folder: Folder of all images.
        log: File for the tools' output.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder.resolve()
        self._log = log

    def make_base(self) -> None:
        """Make Debian's Python and tag it as the base.

        Raises:
            ProofError: A tool failed.
        """
        root = self._folder / "debian"
        command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _RELEASE]
        # Its mounts end with it, however it ends.
        self._run(["unshare", "--mount", *command, str(root)], "debootstrap")
        for name in ("python", "python3"):
            (root / "usr" / "local" / "bin" / name).symlink_to("/usr/bin/python3")
        # Certificates that this machine trusts for its package index.
        shutil.copyfile(Path("/") / _CERTIFICATES, root / _CERTIFICATES)
        container = self._buildah(["from", "scratch"]).strip()
        self._buildah(["add", "--quiet", container, str(root), "/"])
        self._buildah(["config", "--env", f"PATH={_PATH}", container])
        self._buildah(["commit", "--quiet", "--rm", container, BASE])
        shutil.rmtree(root)

    def build(self, context: Path, target: str, name: str) -> None:
        """Build one target of the context's Dockerfile.

        Raises:
            ProofError: The build failed.
        """
        options = ["--isolation", "chroot", "--format", "docker", "--pull-never"]
        named = ["--target", target, "--tag", name]
        self._buildah(["build", *options, *named, "--logfile", str(self._log), str(context)])

    def mounted(self, name: str) -> Image:
        """Mount an image.

        Raises:
            ProofError: The image is absent.
        """
        container = self._buildah(["from", "--pull-never", name]).strip()
        root = Path(self._buildah(["mount", container]).strip())
        described = json.loads(self._buildah(["inspect", "--type", "image", name]))
        return Image(name, root, described["Docker"]["config"])

    def close(self) -> None:
        """Release all mounts and the disk.

        Raises:
            ProofError: A mount is still in use.
        """
        self._buildah(["umount", "--all"])
        self._buildah(["rm", "--all"])
        shutil.rmtree(self._folder)

    def _buildah(self, arguments: Sequence[str]) -> str:
        store = ["--root", str(self._folder / "store"), "--runroot", str(self._folder / "run")]
        command = ["buildah", *store, "--storage-driver", "vfs", *arguments]
        return self._run(command, f"buildah {arguments[0]}")

    def _run(self, command: Sequence[str], name: str) -> str:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=log, text=True, timeout=_STEP_SECONDS
            )
            log.write(done.stdout)
        if done.returncode != 0:
            raise ProofError(f"{name} ended with {done.returncode}; {self._log} says why")
        return done.stdout
