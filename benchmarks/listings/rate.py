"""The rate at which a server answers listings, measured by a client process."""

from __future__ import annotations

from benchmarks.processes import run_json


def listing_rate(
    address: tuple[str, int], pid: int, answer_bytes: int, seconds: float, *options: str
) -> dict[str, float]:
    """Return answers per second, processor time per answer, and used shares of a core.

    Args:
        address: The server's host and port.
        pid: The id of the measured server process.
        answer_bytes: The size of each answer in bytes.
        seconds: The duration of the measurement.
        options: Further arguments for the client's command line.

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
