"""Definitions of metrics as rows of a table, read by Prometheus and OpenTelemetry alike.

A table is a tuple of rows, made by :func:`table` for Prometheus alone, otherwise one by one.
Prometheus (``limiter/metrics/prometheus.py``) and OpenTelemetry (``limiter/metrics/otel.py``) read
the same rows, so the two cannot disagree. To add an instrument, add a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.metrics.wait_times import WaitTimes

SourceT = TypeVar("SourceT")
Value: TypeAlias = int | float
Key: TypeAlias = str | Enum | tuple[str, ...]
Pairs: TypeAlias = Iterable[tuple[Key, Value]]
"""Values by label, or by several labels."""
Labelled: TypeAlias = Mapping[Any, Value] | Pairs
QUANTILES = (0.5, 0.95, 0.99, 1.0)
_UNITS = {"By": "_bytes", "s": "_seconds"}
_MILLIS = {"s": "_ms"}


class Kind(Enum):
    """Types of metrics: those of Prometheus, and OpenTelemetry's up-down counter."""

    GAUGE = "gauge"
    UP_DOWN_COUNTER = "up-down counter"
    COUNTER = "counter"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """A value of a metric, with labels.

    Attributes:
        suffix: End of the sample's name in a summary or histogram, such as ``_count``.
    """

    labels: Mapping[str, str]
    value: Value
    suffix: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Instrument(Generic[SourceT]):
    """Definition of a metric, as a row of a table.

    Attributes:
        name: OpenTelemetry's name, or the name of an instrument that only Prometheus has.
        description: A sentence without a full stop.
        kind: The kind of instrument.
        read: Returns the current samples of a source.
        unit: OpenTelemetry's unit. Bytes and seconds also appear in Prometheus' name; a summary's
            seconds are milliseconds there.
    """

    name: str
    description: str
    kind: Kind
    read: Callable[[SourceT], Iterable[Sample]]
    unit: str = "1"

    @property
    def prometheus_name(self) -> str:
        """Name of the metric in Prometheus, where a counter's samples add ``_total``."""
        name = self.name.replace(".", "_").removesuffix("_total")
        return name + (_MILLIS if self.kind is Kind.SUMMARY else _UNITS).get(self.unit, "")


Table: TypeAlias = tuple[Instrument[SourceT], ...]


class Buckets(NamedTuple):
    """Counts of a histogram's buckets, and the sum of all values.

    Attributes:
        bounds: Upper bounds as text.
        counts: Number of values in each bucket, and of values above all bounds.
        sum: The sum of all values.
    """

    bounds: Iterable[str]
    counts: Sequence[int]
    sum: float


def gauge(
    name: str,
    description: str,
    read: Callable[[SourceT], Value | Labelled],
    *labels: str,
    unit: str = "1",
    kind: Kind = Kind.GAUGE,
) -> Instrument[SourceT]:
    """Define a metric that rises and falls; with ``labels``, it has a value for each label."""

    def samples(source: SourceT) -> Iterable[Sample]:
        found = read(source)
        if isinstance(found, int | float):
            return (Sample({}, found),)
        if isinstance(found, Mapping):
            found = found.items()
        return [Sample(dict(zip(labels, _texts(key), strict=False)), one) for key, one in found]

    return Instrument(name, description, kind, samples, unit)


def counter(
    name: str,
    description: str,
    read: Callable[[SourceT], Value | Labelled],
    *labels: str,
    unit: str = "1",
) -> Instrument[SourceT]:
    """Define a metric that only grows; with ``labels``, it has a value for each label."""
    return gauge(name, description, read, *labels, unit=unit, kind=Kind.COUNTER)


def table(
    prefix: str, *rows: tuple[str, str, str | Callable[[SourceT], Value | Labelled]]
) -> Table[SourceT]:
    """Define metrics for Prometheus alone, each by a short row.

    A row is, for example, ``("pauses_total{cause}", "Times paused", "pauses")``.

    Args:
        prefix: The beginning of each name.
        rows: Each row's name, with ``_total`` for a counter, and labels in braces; its description;
            and an attribute of the source, or a function that reads the value or values.
    """
    return tuple(_row(prefix + name, description, read) for name, description, read in rows)


def _row(
    name: str, description: str, read: str | Callable[[SourceT], Value | Labelled]
) -> Instrument[SourceT]:
    name, _, labels = name.rstrip("}").partition("{")
    reading = attrgetter(read) if isinstance(read, str) else read
    make = counter if name.endswith("_total") else gauge
    return make(name, description, reading, *labels.split(",") if labels else ())


def summary(
    name: str,
    description: str,
    read: Callable[[SourceT], WaitTimes],
    quantiles: Sequence[float] = QUANTILES,
    unit: str = "1",
) -> Instrument[SourceT]:
    """Define a metric of waiting times, shown as quantiles in milliseconds."""

    def samples(source: SourceT) -> Iterable[Sample]:
        waits = read(source)
        for quantile, millis in zip(quantiles, waits.quantiles(quantiles), strict=True):
            yield Sample({"quantile": str(quantile)}, millis)
        yield Sample({}, waits.count, "_count")
        yield Sample({}, waits.sum_millis, "_sum")

    return Instrument(name, description, Kind.SUMMARY, samples, unit)


def histogram(
    name: str, description: str, read: Callable[[SourceT], Buckets]
) -> Instrument[SourceT]:
    """Define a metric of values counted in buckets."""

    def samples(source: SourceT) -> Iterable[Sample]:
        found = read(source)
        for bound, count in zip((*found.bounds, "+Inf"), accumulate(found.counts), strict=True):
            yield Sample({"le": bound}, count, "_bucket")
        yield Sample({}, sum(found.counts), "_count")
        yield Sample({}, found.sum, "_sum")

    return Instrument(name, description, Kind.HISTOGRAM, samples)


def _texts(key: Key) -> tuple[str, ...]:
    if isinstance(key, tuple):
        return key
    return (str(key.value) if isinstance(key, Enum) else key,)
