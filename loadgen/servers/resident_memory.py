"""Resident memory of a server process on this machine, from the kernel's own books.

Idle is measured after writing 5 to ``clear_refs``, which sets the high-water mark (VmHWM) back to
what is resident at that moment; the peak is VmHWM from then on, so no peak is missed between two
looks. Linux only.
"""

from __future__ import annotations

import re
from pathlib import Path

from loadgen.errors import UsageError

_RESET_HIGH_WATER_MARK = "5"
_LINE = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)


class ResidentMemory:
    """One process. Units: bytes.

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
        return self._read("VmRSS")

    def peak_bytes(self) -> int:
        """Return the most that was resident since the reset.

        Raises:
            UsageError: The process has ended.
        """
        return self._read("VmHWM")

    def _read(self, field: str) -> int:
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
