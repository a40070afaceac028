"""A container's command lines without a container engine: run in a root like the image's.

The root has this machine's directories, ``/pulsar`` as the image has it, and the servers of this
checkout as the image's programs. Network, processes and user are the machine's. It needs a mount
namespace: root's, or one of a user without rights where the kernel allows it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tests.support.processes.server_process import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROGRAMS = {"floodgate-broker": "broker", "floodgate-admin": "client.admin"}
_OTHERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTER = """
for path in /*; do
  inside=$1$path
  if [ -L "$path" ]; then cp -P "$path" "$inside"
  elif [ -d "$path" ]; then mkdir -p "$inside" && mount --rbind "$path" "$inside"; fi
done
root=$1; shift
exec chroot "$root" env -i --chdir=/pulsar "$@"
"""
_UNSHARE = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--mount", "--")


def namespaces_obstacle() -> str:
    """Return why there can be no mount namespace here; empty if there can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed (Debian: util-linux)"
    refused = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode
    return "the kernel refuses a mount namespace to this user" if refused else ""


class ImageRoot:
    """A root with the image's ``/pulsar``.

    Args:
        folder: A folder for it.
        gate: A FIFO that must be written to before a broker starts.
    """

    def __init__(self, folder: Path, gate: Path | None = None) -> None:
        self._folder = folder
        shutil.copytree(REPOSITORY / "deploy" / "pulsar", folder / "root" / "pulsar")
        programs = folder / "root" / "programs"
        programs.mkdir()
        for name, module in {**PROGRAMS, "python": ""}.items():
            waits = f"read -r _ < {shlex.quote(str(gate))}\n" if gate and module == "broker" else ""
            started = f"{shlex.quote(sys.executable)} {f'-m {module}' if module else ''}"
            script = programs / name
            script.write_text(f'#!/bin/sh\n{waits}exec {started} "$@"\n')
            script.chmod(0o755)

    def command(self, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return what runs a container's command line with a container's variables."""
        variables = {"PATH": f"/programs:{_OTHERS}", "PYTHONPATH": str(REPOSITORY), **environment}
        inside = [*(f"{name}={value}" for name, value in variables.items()), *words]
        enter = ["sh", "-ec", _ENTER, "sh", str(self._folder / "root"), *inside]
        return [*_UNSHARE, *enter]

    @contextlib.contextmanager
    def running(self, words: Sequence[str], environment: Mapping[str, str]) -> Iterator[IO[str]]:
        """Run a container's command line for a block; yield its standard output."""
        log = self._folder / "errors.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                self.command(words, environment),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            # Shells of the command line pass no signal on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a command to its end as an engine runs it in a container; return its output."""
        done = subprocess.run(
            self.command(words, environment), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}"
        return done.stdout
