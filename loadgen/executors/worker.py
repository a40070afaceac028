"""The worker process: runs one task for :mod:`loadgen.executors.processes`."""

from __future__ import annotations

import signal
import sys

from loadgen.errors import LoadgenError
from loadgen.executors.runner import read_plan, run_task


def agree(now_epoch_seconds: float) -> float:
    """Tell the driver that all clients are connected and wait for T0.

    Raises:
        LoadgenError: The driver has gone.
    """
    sys.stdout.write(f"CONNECTED {now_epoch_seconds!r}\n")
    sys.stdout.flush()
    word, _, t0_epoch_seconds = sys.stdin.readline().partition(" ")
    if word != "T0":
        raise LoadgenError("the driver ended before the run began")
    return float(t0_epoch_seconds)


def write_report(descriptor: int, report: bytes) -> None:
    """Write a report and its length.

    With PYTHONUNBUFFERED standard output may take only a part of it, unnoticed.
    """
    with open(descriptor, "wb", closefd=False) as out:
        out.write(f"REPORT {len(report)}\n".encode())
        out.write(report)


def main() -> None:
    """Read the plan, run it, write the report."""
    try:
        plan = read_plan(sys.stdin.readline())
        report = run_task(plan, agree, ends_early_on=signal.SIGTERM).to_bytes()
    except LoadgenError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(int(error.exit_code))
    write_report(sys.stdout.fileno(), report)


if __name__ == "__main__":
    main()
