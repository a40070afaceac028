"""Hosts of one machine: network namespaces on a bridge, each with an address and a name.

They share files and process numbers. Everything is made within a user namespace, so that neither
rights nor cleanup are needed.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.proof.result import ProofError

_NETWORK = "10.77.0"
_NAMESPACES = ("net", "mount", "uts")
_BRIDGE = (
    "ip link add switch type bridge && ip link set switch up && echo ready && exec sleep 86400"
)
_HOST = """\
hostname "$1" && mount --bind "$2" /etc/hosts && ip link set lo up && echo ready && exec sleep 86400
"""


@dataclass(frozen=True)
class Host:
    """A running host.

    Attributes:
        pid: An idle process in the host's namespaces.
        network: The network namespace of all the host's processes.
    """

    name: str
    address: str
    pid: int
    network: str

    def command(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> list[str]:
        """Return the command line that runs a program on this host with these variables alone."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        # The proof's parent may have disabled Ctrl-C.
        within = ["env", "--default-signal=INT", "-i", "-C", str(folder), *variables]
        return [*_entering(self.pid, ("user", *_NAMESPACES)), *within, *words]

    def kill(self) -> None:
        """Kill all its processes, as in a power failure; the host stays usable."""
        for _ in range(2):  # A process may have started a child meanwhile.
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    is_here = os.readlink(folder / "ns" / "net") == self.network
                    if is_here and int(folder.name) != self.pid:
                        os.kill(int(folder.name), signal.SIGKILL)


@contextmanager
def network(names: Sequence[str], out: Path) -> Iterator[dict[str, Host]]:
    """Run hosts for a block.

    Args:
        names: Their names.
        out: Folder of the hosts file.

    Raises:
        ProofError: This machine has no user namespaces, or no ``ip``.
    """
    addresses = {name: f"{_NETWORK}.{number}" for number, name in enumerate(names, start=10)}
    known = out / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    known.write_text("\n".join(lines) + "\n", encoding="utf-8")
    running: list[subprocess.Popen[str]] = []
    hosts: dict[str, Host] = {}
    try:
        unshared = [f"--{each}" for each in _NAMESPACES]
        alone = ["unshare", "--user", "--map-root-user", *unshared, "sh", "-c", _BRIDGE]
        switch = _started(alone, running)
        for name, address in addresses.items():
            words = ["unshare", *unshared, "sh", "-c", _HOST, "sh", name, str(known.resolve())]
            pid = _started([*_entering(switch, ("user", *_NAMESPACES)), *words], running)
            hosts[name] = Host(name, address, pid, os.readlink(f"/proc/{pid}/ns/net"))
            plug = f"to-{name}"
            _run(switch, f"ip link add {plug} type veth peer name eth0 netns {pid}")
            _run(switch, f"ip link set {plug} master switch up")
            _run(pid, f"ip addr add {address}/24 dev eth0 && ip link set eth0 up")
        yield hosts
    finally:
        for host in hosts.values():
            host.kill()
        for process in running:
            process.kill()
            process.communicate()


def _entering(pid: int, namespaces: Sequence[str]) -> list[str]:
    """Return the words before a command that enters a process's namespaces."""
    options = [f"--{each}" for each in namespaces]
    return ["nsenter", "--target", str(pid), "--preserve-credentials", *options]


def _started(command: Sequence[str], running: list[subprocess.Popen[str]]) -> int:
    """Start the process that holds namespaces; return its process id once they exist."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    running.append(process)
    assert process.stdout is not None
    if (said := process.stdout.readline()) != "ready\n":
        raise ProofError(f"this machine cannot have hosts of its own: {said.strip()}")
    return process.pid


def _run(pid: int, script: str) -> None:
    words = [*_entering(pid, ("user", *_NAMESPACES)), "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{script}: {done.stderr.strip()}")


def run_on(host: Host, *words: str) -> None:
    """Run a short command on a host.

    Raises:
        ProofError: The command failed.
    """
    _run(host.pid, shlex.join(words))
