"""The figures that only a run of a client with a memory limit has, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.results.checks import CheckResult
from loadgen.results.latency import read_figures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class PartFigures:
    """One client process: consumers with the queues of one policy, or producers.

    Units: bytes, seconds, counts. A name that ends in ``_peak`` is the most that a sample met.

    Attributes:
        messages: Messages received, or delivered.
        high_water_bytes: The most that the client counted.
        resident_peak_bytes: The most that the whole process took.
        resident_baseline_bytes: What it took before there was a client.
        consumers_waiting_peak: Consumers that held no permits and waited for a turn.
        without_message: Consumers that got nothing.
        first_message_slowest_seconds: Of the others, from subscribing on.
    """

    seconds: float
    messages: int
    high_water_bytes: int
    resident_peak_bytes: int
    resident_baseline_bytes: int
    queue_most_peak: int
    queue_sum_peak: int
    growths_peak: int
    shrinks_peak: int
    consumers_waiting_peak: int
    sends_waiting_peak: int
    without_message: int
    first_message_slowest_seconds: float | None

    @property
    def rest_bytes(self) -> int:
        """The bytes that the process took beyond those before the client and those it counted."""
        return self.resident_peak_bytes - self.resident_baseline_bytes - self.high_water_bytes


@dataclass(frozen=True)
class ClientMemoryFigures:
    """The parts of a run, by name, and what was judged.

    Attributes:
        messages_sent: Messages that producers were to deliver.
    """

    limit_bytes: int
    consumers: int
    messages_sent: int
    parts: Mapping[str, PartFigures]
    checks: Sequence[CheckResult]


def parse_client_memory(document: Mapping[str, Any] | None) -> ClientMemoryFigures | None:
    """Turn what a summary says of a client's memory into figures; None where it says nothing.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    if document is None:
        return None
    parts = {name: read_figures(PartFigures, part) for name, part in document["parts"].items()}
    checks = [CheckResult(**check) for check in document["checks"]]
    return read_figures(ClientMemoryFigures, document, parts=parts, checks=checks)
