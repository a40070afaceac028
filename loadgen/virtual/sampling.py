"""What the servers say of themselves in virtual time, in the form of a scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.servers.scrape import SCRAPE_SECONDS, ScrapedSeries, is_kept, other_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from limiter.clock import Clock, TimerHandle
    from loadgen.clients.context import RunTime

_OF_THIS_PROCESS = ("process_", "floodgate_event_loop", "floodgate_server_info")
"""What the simulating process would say of itself."""
_MOST_SAMPLES = 2_000


class Sampler:
    """Asks the servers' registries four times a second of virtual time, later more seldom.

    Args:
        services: The servers by name.
    """

    def __init__(self, services: Mapping[str, Any], clock: Clock) -> None:
        self.series: dict[str, dict[str, ScrapedSeries]] = {name: {} for name in services}
        self._services = services
        self._clock = clock
        self._time: RunTime
        self._timer: TimerHandle | None = None
        self._interval = SCRAPE_SECONDS
        self._samples = 0

    def start(self, time: RunTime) -> None:
        """Begin."""
        self._time = time
        self._sample()

    def stop(self) -> None:
        """Look once more, and end."""
        if self._timer is not None:
            self._timer.cancel()
        self._take()

    def points(self) -> Iterator[tuple[float, str, str, float]]:
        """Yield (at_seconds, process, metric, value) of everything seen, as ServerWatch does."""
        for process, found in self.series.items():
            for metric, series in found.items():
                for at, value in zip(series.at, series.values, strict=True):
                    yield at - self._time.t0, process, metric, value

    def _sample(self) -> None:
        self._take()
        self._samples += 1
        if self._samples % _MOST_SAMPLES == 0:
            self._interval *= 2
        self._timer = self._clock.call_at(self._clock.now() + self._interval, self._sample)

    def _take(self) -> None:
        now = self._clock.now()
        for process, service in self._services.items():
            found = self.series[process]
            for family in service.registry.collect():
                if family.name.startswith(_OF_THIS_PROCESS):
                    continue
                for sample in family.samples:
                    if is_kept(sample.name) and not sample.name.endswith("_created"):
                        name = sample.name + other_labels(sample.labels.items())
                        found.setdefault(name, ScrapedSeries()).add(now, float(sample.value))
