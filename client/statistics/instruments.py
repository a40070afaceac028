"""The table of a client's metrics instruments, for all metrics libraries.

Plain data: Prometheus (``client/statistics/metrics.py``) and OpenTelemetry
(``client/statistics/otel.py``) derive their instruments from the table, and so cannot disagree. To
add an instrument, add a row with the attribute to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.statistics.statistics import ClientStatistics

Attributes: TypeAlias = dict[str, str]
PREFIX = "floodgate.client"


@dataclass(frozen=True, slots=True)
class Instrument:
    """A row of the table.

    Attributes:
        name: OpenTelemetry's name, without the prefix.
        attribute: The attribute to read, of the statistics of the row's group.
        unit: OpenTelemetry's unit; bytes and seconds also appear in Prometheus' name.
        description: A sentence without a full stop.
        counts: Whether the value only grows.
    """

    name: str
    attribute: str
    unit: str
    description: str
    counts: bool = False

    @property
    def full_name(self) -> str:
        """OpenTelemetry's name."""
        return f"{PREFIX}.{self.name}"

    @property
    def prometheus_name(self) -> str:
        """Prometheus' name, without the ``_total`` of a counter."""
        unit = {"By": "_bytes", "s": "_seconds"}.get(self.unit, "")
        return self.full_name.replace(".", "_") + unit


def _rows(
    group: str, *rows: tuple[str, str, str, str], counts: bool = False
) -> tuple[Instrument, ...]:
    return tuple(
        Instrument(f"{group}.{name}", attribute, unit, text, counts)
        for name, attribute, unit, text in rows
    )


MEMORY_INSTRUMENTS = (
    *_rows(
        "memory",
        ("limit", "limit_bytes", "By", "The memory limit for messages"),
        ("usage", "usage_bytes", "By", "The memory used by messages"),
        ("high_water", "high_water_bytes", "By", "The highest memory use of messages"),
        ("waiters", "waiters", "1", "Sends waiting for memory"),
        ("oldest_waiter", "oldest_waiter_seconds", "s", "The longest current wait for memory"),
        ("prefetched", "prefetched_bytes", "By", "The memory of prefetched messages"),
        ("promised", "promised_bytes", "By", "The memory promised by permits"),
        ("consumers_waiting", "consumers_waiting", "1", "Consumers waiting for memory"),
        ("reservations", "reservations", "1", "Reservations that were not released yet"),
    ),
    *_rows(
        "memory",
        ("waits", "waits_total", "1", "Finished waits for memory"),
        ("wait_time", "wait_seconds_total", "s", "The total time of finished waits"),
        ("rejections", "rejected_total", "1", "Requests refused for lack of memory"),
        ("timeouts", "timeouts_total", "1", "Requests timed out waiting for memory"),
        counts=True,
    ),
)
PRODUCER_INSTRUMENTS = (
    *_rows(
        "producer",
        ("connected", "is_connected", "1", "Whether the producer is attached"),
        ("pending_messages", "pending_messages", "1", "Messages without a receipt"),
        ("pending", "pending_bytes", "By", "The memory of messages without a receipt"),
        ("waiting_sends", "waiting_sends", "1", "Sends waiting for a queue slot or memory"),
    ),
    *_rows(
        "producer",
        ("messages_sent", "messages_sent_total", "1", "Acknowledged messages"),
        ("sent", "bytes_sent_total", "By", "Payload bytes of acknowledged messages"),
        ("send_failures", "send_failures_total", "1", "Messages that failed"),
        ("send_timeouts", "send_timeouts_total", "1", "Messages without a receipt in time"),
        ("queue_full", "queue_full_total", "1", "Sends refused for lack of a queue slot"),
        ("memory_full", "memory_full_total", "1", "Sends refused for lack of memory"),
        ("reconnections", "reconnections_total", "1", "Reconnections"),
        counts=True,
    ),
)
CONSUMER_INSTRUMENTS = (
    *_rows(
        "consumer",
        ("connected", "connected", "1", "Whether the consumer is attached"),
        ("messages_queued", "messages_queued", "1", "Messages arrived and not taken"),
        ("queued", "bytes_queued", "By", "The memory of messages arrived and not taken"),
        ("queue_size", "queue_size", "1", "Limit on queued and in-flight messages"),
        ("permits", "permits_outstanding", "1", "Permits of the broker"),
        ("unacknowledged", "unacknowledged", "1", "Entries with a running ack timeout"),
    ),
    *_rows(
        "consumer",
        ("messages_received", "messages_received", "1", "Messages handed to the program"),
        ("received", "bytes_received", "By", "Payload bytes handed to the program"),
        ("queue_growths", "queue_growths", "1", "Increases of the queue size"),
        ("queue_shrinks", "queue_shrinks", "1", "Decreases of the queue size"),
        ("redelivery_requests", "redelivery_requests", "1", "Redelivery requests sent"),
        ("broken_entries", "broken_entries", "1", "Entries that could not be read"),
        ("reconnections", "reconnections", "1", "Reconnections"),
        counts=True,
    ),
)
ALL_INSTRUMENTS = (*MEMORY_INSTRUMENTS, *PRODUCER_INSTRUMENTS, *CONSUMER_INSTRUMENTS)
"""All have their client's name; producers and consumers have their names and topics as well."""


def values(
    instrument: Instrument, client: str, statistics: ClientStatistics
) -> Iterator[tuple[Attributes, float]]:
    """Return an instrument's values for a client, each with its attributes.

    Producers of the same name and topic, and consumers of the same name, subscription and topic,
    are summed: a metrics library has a single place for each.
    """
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for attributes, source in _sources(instrument, statistics):
        key = tuple(attributes.items())
        sums[key] = sums.get(key, 0) + float(getattr(source, instrument.attribute))
    for key, value in sums.items():
        yield {"client": client, **dict(key)}, value


def _sources(
    instrument: Instrument, statistics: ClientStatistics
) -> Iterator[tuple[Attributes, object]]:
    if instrument in MEMORY_INSTRUMENTS:
        yield {}, statistics.memory
    elif instrument in PRODUCER_INSTRUMENTS:
        for producer in statistics.producers:
            yield {"topic": producer.topic, "producer": producer.producer_name}, producer
    else:
        for consumer in statistics.consumers:
            for topic in consumer.topics:
                names = {"subscription": consumer.subscription, "consumer": consumer.consumer_name}
                yield {"topic": topic.topic, **names}, topic


def attribute_names(instrument: Instrument) -> tuple[str, ...]:
    """Return the attribute names of an instrument's values."""
    if instrument in MEMORY_INSTRUMENTS:
        return ("client",)
    if instrument in PRODUCER_INSTRUMENTS:
        return ("client", "topic", "producer")
    return ("client", "topic", "subscription", "consumer")
