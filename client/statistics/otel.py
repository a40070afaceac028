"""Export of a client's statistics to OpenTelemetry.

Imported only for OpenTelemetry: the import costs time and memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from client.statistics.instruments import INSTRUMENTS
from client.statistics.statistics import StatisticsReader, client_name
from limiter.metrics.otel import create

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from client.statistics.statistics import ClientStatistics, HasStatistics
    from limiter.metrics.instruments import Instrument


def create_instruments(meter: Meter, client: HasStatistics, name: str | None = None) -> None:
    """Create OpenTelemetry instruments for a client; call this in the client's event loop.

    The instruments yield no values after the loop has ended, or while the loop does not answer.

    Args:
        meter: Meter that creates the instruments.
        client: The client.
        name: Value of the attribute ``client``; by default ``client-1`` and so on.
    """
    labels, readings = {"client": name or client_name(client)}, _Readings(client)
    for row in INSTRUMENTS:
        create(meter, row, partial(readings.of, row), labels)


class _Readings:
    """A snapshot of the statistics that all instruments share during one collection."""

    def __init__(self, client: HasStatistics) -> None:
        self._reader = StatisticsReader(client)
        self._asked = set(INSTRUMENTS)
        self._found: ClientStatistics | None = None

    def of(self, instrument: Instrument[ClientStatistics]) -> ClientStatistics | None:
        if instrument in self._asked:
            self._asked.clear()
            try:
                self._found = self._reader.read()
            except TimeoutError:
                self._found = None
        self._asked.add(instrument)
        return self._found
