"""The means of this machine: descriptors, ports, a listen backlog, memory and disk."""

from __future__ import annotations

import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 62
_NET = Path("/proc/sys/net")


@dataclass(frozen=True)
class Machine:
    """The means of a machine; None is unknown.

    Attributes:
        descriptors: The most that a process may open.
        ports: Free for one pair of source and destination address.
        backlog: The most connections that a socket lets wait to be accepted.
        memory_bytes: What is available now.
        disk_bytes: What is free where the run is written.
    """

    descriptors: int
    ports: int | None = None
    backlog: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None


def this_machine(out: Path) -> Machine:
    """Return the means of this machine; ``out`` is where the run is written."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ports = _numbers(_NET / "ipv4/ip_local_port_range")
    backlog = _numbers(_NET / "core/somaxconn")
    return Machine(
        _UNLIMITED if hard == resource.RLIM_INFINITY else hard,
        ports[1] - ports[0] + 1 if len(ports) == 2 else None,
        backlog[0] if backlog else None,
        _available_memory(),
        shutil.disk_usage(_existing(out)).free,
    )


def _numbers(file: Path) -> list[int]:
    try:
        return [int(each) for each in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _available_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    return int(sizes["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in sizes else None


def _existing(path: Path) -> Path:
    """Return a folder, or the nearest one above it that is there."""
    path = path.resolve()
    return next(each for each in (path, *path.parents) if each.is_dir())
