"""Takes what the servers say of themselves in virtual time, in the form of a scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.servers.facts import ServerFacts
from loadgen.servers.scrape import SCRAPE_SECONDS, is_kept, other_labels
from loadgen.servers.series import ProcessSeries, ScrapeTarget, WatchedServers
from proto.version import FLOODGATE_VERSION
from server.server_info import INFO_KEYS, server_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from limiter.clock import TimerHandle
    from loadgen.clients.context import RunTime
    from loadgen.virtual.loop import VirtualClock

_OF_THE_SIMULATOR = ("process_", "floodgate_event_loop")
"""Metrics of processes, which the one that simulates has of its own."""
_SAMPLES_AT_ONE_PACE = 2_000
LONGEST_INTERVAL_SECONDS = 4_096 * SCRAPE_SECONDS


class Sampler(WatchedServers):
    """Asks the servers' registries four times a second of virtual time, after a while more seldom.

    Args:
        services: The servers by name.
        clock: Theirs.
        time: Says when T0 was.
    """

    def __init__(self, services: Mapping[str, Any], clock: VirtualClock, time: RunTime) -> None:
        super().__init__({name: ProcessSeries(ScrapeTarget(name, "")) for name in services})
        self._services = services
        self._clock = clock
        self._time = time
        self._timer: TimerHandle | None = None
        self._interval = SCRAPE_SECONDS
        self._samples = 0

    def start(self) -> None:
        """Look, and look again."""
        self._take()
        self._samples += 1
        if self._samples % _SAMPLES_AT_ONE_PACE == 0:
            self._interval = min(2 * self._interval, LONGEST_INTERVAL_SECONDS)
        self._timer = self._clock.call_at(self._clock.now() + self._interval, self.start)

    def stop(self) -> None:
        """Look once more, when all clients have left, and end."""
        if self._timer is not None:
            self._timer.cancel()
        self._take()
        for process in self.processes.values():
            process.seen_at_the_end = True

    def points(
        self, seconds_of: Callable[[float], float]
    ) -> Iterator[tuple[float, str, str, float]]:
        """See WatchedServers.points; virtual time needs no driver's clock."""
        del seconds_of
        return super().points(lambda at: at - self._time.t0)

    def _take(self) -> None:
        for process, service in self._services.items():
            self.processes[process].add(self._clock.now(), dict(_samples(service.registry)))


def _samples(registry: Any) -> Iterator[tuple[str, float]]:  # noqa: ANN401 - of the metrics library
    for family in registry.collect():
        if family.name.startswith(_OF_THE_SIMULATOR):
            continue
        for sample in family.samples:
            if is_kept(sample.name) and not sample.name.endswith("_created"):
                yield sample.name + other_labels(sample.labels.items()), float(sample.value)


def facts_of(service: Any) -> ServerFacts:  # noqa: ANN401 - broker or proxy
    """Return what a server says of its version and settings, as a scrape would find it."""
    info = server_info(service.config)
    return ServerFacts(FLOODGATE_VERSION, {key: info[key] for key in INFO_KEYS})
