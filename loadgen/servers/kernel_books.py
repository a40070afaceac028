"""Memory, processor time and descriptors of a process on this machine, from the kernel's books.

A server that is busy answers its ``/metrics/`` late; ``/proc`` answers at once.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from loadgen.errors import UsageError

_RESET_HIGH_WATER_MARK = "5"
_LINE = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)
_OPEN_FILES = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name, which may hold anything: user and system time.
_USER_TIME, _SYSTEM_TIME = 11, 12


class KernelBooks:
    """One process. Units: bytes, seconds, counts.

    Args:
        process: What it is called in messages, ``broker`` or ``proxy``.
        pid: Its process id.
    """

    def __init__(self, process: str, pid: int, proc: Path = Path("/proc")) -> None:
        self._process = process
        self._pid = pid
        self._directory = proc / str(pid)

    def reset_high_water_mark(self) -> int:
        """Begin a new peak and return what is resident now.

        Raises:
            UsageError: There is no such process here, or it belongs to somebody else.
        """
        try:
            (self._directory / "clear_refs").write_text(_RESET_HIGH_WATER_MARK)
        except OSError as error:
            raise self._unreadable(error) from None
        return self._memory("VmRSS")

    def peak_bytes(self) -> int:
        """Return the most that was resident since the reset.

        Raises:
            UsageError: The process has ended.
        """
        return self._memory("VmHWM")

    def samples(self) -> dict[str, float]:
        """Return what the process would tell of itself, by Prometheus' names.

        Raises:
            UsageError: The process has ended.
        """
        return {"process_resident_memory_bytes": self._memory("VmRSS"), **self._use()}

    def _use(self) -> dict[str, float]:
        try:
            times = (self._directory / "stat").read_text().rpartition(")")[2].split()
            limit = _OPEN_FILES.search((self._directory / "limits").read_text())
            descriptors = len(os.listdir(self._directory / "fd"))
        except OSError as error:
            raise self._unreadable(error) from None
        ticks = int(times[_USER_TIME]) + int(times[_SYSTEM_TIME])
        return {
            "process_cpu_seconds_total": ticks / _TICKS_PER_SECOND,
            "process_open_fds": descriptors,
            **({"process_max_fds": float(limit[1])} if limit else {}),
        }

    def _memory(self, field: str) -> int:
        try:
            status = (self._directory / "status").read_text()
        except OSError as error:
            raise self._unreadable(error) from None
        found = {name: int(kilobytes) * 1024 for name, kilobytes in _LINE.findall(status)}
        if field not in found:
            raise UsageError(f"process {self._pid} ({self._process}) has ended")
        return found[field]

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"the memory of process {self._pid} (--{self._process}-pid) cannot be read: "
            f"{error.strerror}; name a process of yours on this machine, or leave it out"
        )
