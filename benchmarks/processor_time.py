"""The processor time of another process, read from /proc (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the command's closing bracket, where `state` is the first.
_USER, _SYSTEM = 11, 12


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process, in user and kernel mode together.

    Raises:
        OSError: The process does not exist.
    """
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The command's name may hold spaces and brackets; only numbers follow its closing bracket.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_SECOND
