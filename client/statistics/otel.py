"""A client's statistics for OpenTelemetry.

Imported only for OpenTelemetry: the import costs time and memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.metrics import Observation

from client.statistics.instruments import ALL_INSTRUMENTS, values
from client.statistics.statistics import StatisticsReader, client_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.metrics import CallbackOptions, Meter

    from client.statistics.instruments import Instrument
    from client.statistics.statistics import ClientStatistics, HasStatistics


def create_instruments(meter: Meter, client: HasStatistics, name: str | None = None) -> None:
    """Create the instruments of a client; call in the client's loop.

    The meter reads them; empty after the loop has ended, or while the loop does not answer.

    Args:
        meter: Creates the instruments.
        client: The client.
        name: As for client.statistics.metrics.ClientMetrics.
    """
    name = name or client_name(client)
    readings = _Readings(client)
    for one in ALL_INSTRUMENTS:
        create = meter.create_observable_counter if one.counts else meter.create_observable_gauge
        create(one.full_name, [_callback(readings, name, one)], one.unit, one.description)


class _Readings:
    """A reading shared by all instruments: a repeated instrument starts a new reading."""

    def __init__(self, client: HasStatistics) -> None:
        self._reader = StatisticsReader(client)
        self._asked: set[Instrument] = set(ALL_INSTRUMENTS)
        self._found: ClientStatistics | None = None

    def of(self, instrument: Instrument) -> ClientStatistics | None:
        if instrument in self._asked:
            self._asked.clear()
            try:
                self._found = self._reader.read()
            except TimeoutError:
                self._found = None
        self._asked.add(instrument)
        return self._found


def _callback(
    readings: _Readings, name: str, instrument: Instrument
) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def read(_: CallbackOptions) -> Iterator[Observation]:
        if (found := readings.of(instrument)) is not None:
            for attributes, value in values(instrument, name, found):
                yield Observation(value, attributes)

    return read
