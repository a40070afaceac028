"""The list of all benchmarks.

A benchmark is a module with ``run(options) -> BenchResult`` and a line here.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.result import BenchOptions, BenchResult


@dataclass(frozen=True)
class Bench:
    """A benchmark, whose module is imported only when it is run."""

    title: str
    module: str

    def run(self, options: BenchOptions) -> BenchResult:
        """Run the benchmark and return its result.

        Raises:
            BenchError: The benchmark could not be measured.
        """
        measure: Callable[[BenchOptions], BenchResult]
        measure = importlib.import_module(self.module).run
        return measure(options)


BENCHES = {
    "listings": Bench("Listings of 10,000 names of 100 bytes", "benchmarks.listings.unfiltered"),
    "tls": Bench("Listings of 10,000 names by TLS", "benchmarks.listings.encrypted"),
    "patterns": Bench("Listings with patterns, and the smallest", "benchmarks.listings.filtered"),
    "flow": Bench("Large answers through one class of connections", "benchmarks.connections.flow"),
    "gate": Bench("Small frames through the read gate", "benchmarks.connections.gate"),
    "pipes": Bench("Messages of 1 KiB through a proxy's pipe", "benchmarks.connections.pipes"),
    "watches": Bench("One topic that 400 watchers are told of", "benchmarks.watches.changes"),
    "limiter": Bench("Uncontended acquire + release", "benchmarks.limiter.uncontended"),
    "waiters": Bench("10,000 requests that wait and end", "benchmarks.limiter.waiters"),
    "waiting-tasks": Bench("10,000 tasks that wait in acquire", "benchmarks.limiter.tasks"),
    "waiter-memory": Bench(
        "Memory of 10,000 tasks that wait in acquire", "benchmarks.limiter.memory"
    ),
    "client-memory": Bench(
        "Memory of messages that a client sends and receives", "benchmarks.limiter.client_memory"
    ),
    "messages": Bench("Messages of 1 KiB in and out", "benchmarks.messages.rates"),
    "official-messages": Bench(
        "Messages of 1 KiB, driven by official clients", "benchmarks.messages.official_clients"
    ),
    "client": Bench(
        "Programs that send and receive, beside the official clients", "benchmarks.client.rates"
    ),
    "idle-consumers": Bench(
        "Memory of 10,000 consumers that wait for messages", "benchmarks.messages.idle_consumers"
    ),
    "import": Bench("Import into memory", "benchmarks.imports.memory_import"),
    "load": Bench("Topics made and requests summed up by loadgen", "benchmarks.load.rates"),
}
