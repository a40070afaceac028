"""Listing rate of a server, measured by the client's process."""

from __future__ import annotations

from benchmarks.processes import run_json


def listing_rate(
    address: tuple[str, int], pid: int, answer_bytes: int, seconds: float, *options: str
) -> dict[str, float]:
    """Return answers per second, their processor time, and the shares of a core used.

    Args:
        address: The server's host and port.
        pid: The measured process.
        answer_bytes: The size of each answer.
        seconds: Duration of the measurement.
        options: Further words for the client's command line.

    Raises:
        BenchError: The client could not measure.
    """
    words = (*address, answer_bytes, seconds, pid)
    found = run_json("benchmarks.listings.client", *options, *map(str, words))
    (cpu_seconds,) = found["cpu_seconds"]
    return {
        "per_second": found["answers"] / found["seconds"],
        "cpu_millis": 1000 * cpu_seconds / max(1, found["answers"]),
        "core_share": cpu_seconds / found["seconds"],
        "client_core_share": found["client_cpu_seconds"] / found["seconds"],
    }
