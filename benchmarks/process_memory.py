"""Resident memory of a process by the kernel, and its peak since a reset.

Source: proc(5), /proc/PID/status and /proc/PID/clear_refs.
"""

from pathlib import Path

_RESET_PEAK = "5"


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    return _status_bytes(pid, "VmRSS")


def peak_resident_bytes(pid: int) -> int:
    """Return the peak since the last :func:`reset_peak`."""
    return _status_bytes(pid, "VmHWM")


def reset_peak(pid: int) -> None:
    """Reset the peak to the current resident memory."""
    Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)


def _status_bytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise ProcessLookupError(f"process {pid} says nothing of {name}")
