"""The rate at which a server answers listings, measured by a client process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.processes import run_json

if TYPE_CHECKING:
    from benchmarks.processes import MeasuredServer


def listing_rate(
    server: MeasuredServer, answer_bytes: int, seconds: float, *options: str
) -> dict[str, float]:
    """Return answers per second, processor time per answer, and used shares of a core.

    Args:
        server: The address of the server, and the process that is measured.
        answer_bytes: The size of each answer in bytes.
        seconds: The duration of the measurement.
        options: Further arguments for the client's command line.

    Raises:
        BenchError: The client could not measure.
    """
    words = (server.host, server.port, answer_bytes, seconds, server.pid)
    found = run_json("benchmarks.listings.client", *options, *map(str, words))
    (cpu_seconds,) = found["cpu_seconds"]
    return {
        "per_second": found["answers"] / found["seconds"],
        "cpu_millis": 1000 * cpu_seconds / max(1, found["answers"]),
        "core_share": cpu_seconds / found["seconds"],
        "client_core_share": found["client_cpu_seconds"] / found["seconds"],
    }
