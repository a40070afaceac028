"""Processor time of another process, from the kernel's own books (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the command's closing bracket, of which `state` is the first.
_USER, _SYSTEM = 11, 12


def cpu_seconds(pid: int) -> float:
    """Return the seconds of processor time a process has used, in user and kernel mode.

    Raises:
        OSError: There is no such process.
    """
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The command's name may hold spaces and brackets; what follows the last one is numbers.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_SECOND
