"""Resources of processes while a proof runs: memory, processor time and descriptors.

Source: proc(5).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.proof.process_memory import peak_resident_bytes

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Needs:
    """Peak resources of some processes; of processor time the sum."""

    resident_bytes: int = 0
    cpu_seconds: float = 0.0
    descriptors: int = 0


@dataclass
class ProcessSamples:
    """The resources of named processes, and of this process's children together.

    Attributes:
        pids: By name.
        children: Name of this process's remaining children.
    """

    pids: Mapping[str, int]
    children: str
    _seen: dict[int, Needs] = field(default_factory=dict)

    def sample(self) -> None:
        for pid in (*self.pids.values(), *self._children()):
            try:
                resident, cpu = peak_resident_bytes(pid), _cpu_seconds(pid)
                descriptors = len(os.listdir(f"/proc/{pid}/fd"))
            except (OSError, ProcessLookupError):
                continue  # ended
            needs = self._seen.setdefault(pid, Needs())
            needs.resident_bytes = max(needs.resident_bytes, resident)
            needs.cpu_seconds = max(needs.cpu_seconds, cpu)
            needs.descriptors = max(needs.descriptors, descriptors)

    def needs(self) -> dict[str, Needs]:
        names = {pid: name for name, pid in self.pids.items()}
        found: dict[str, Needs] = {}
        for pid, needs in self._seen.items():
            total = found.setdefault(names.get(pid, self.children), Needs())
            total.resident_bytes += needs.resident_bytes
            total.cpu_seconds += needs.cpu_seconds
            total.descriptors += needs.descriptors
        return found

    def _children(self) -> list[int]:
        found = Path("/proc/self/task").glob("*/children")
        pids = {int(pid) for path in found for pid in path.read_text().split()}
        return sorted(pids - set(self.pids.values()))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
