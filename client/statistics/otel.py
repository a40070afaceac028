"""The figures of a client for OpenTelemetry.

Only imported when somebody wants OpenTelemetry: the import costs time and memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.metrics import Observation

from client.statistics.instruments import ALL_INSTRUMENTS, values
from client.statistics.statistics import StatisticsReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.metrics import CallbackOptions, Meter

    from client.statistics.instruments import Instrument
    from client.statistics.statistics import HasStatistics


def create_instruments(meter: Meter, client: HasStatistics) -> None:
    """Make the instruments of a client; to be called in the client's loop.

    They are read when the meter is.
    """
    reader = StatisticsReader(client)
    for one in ALL_INSTRUMENTS:
        create = meter.create_observable_counter if one.counts else meter.create_observable_gauge
        create(one.full_name, [_reading(reader, one)], one.unit, one.description)


def _reading(
    reader: StatisticsReader, instrument: Instrument
) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def read(_: CallbackOptions) -> Iterator[Observation]:
        for attributes, value in values(instrument, reader.read()):
            yield Observation(value, attributes)

    return read
