"""The definitions of metrics for a client's memory, producers and consumers.

Prometheus (``client/statistics/metrics.py``) and OpenTelemetry (``client/statistics/otel.py``) read
the same rows. To add an instrument, add a row with the attribute to read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from limiter.metrics.instruments import counter, gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from client.statistics.statistics import ClientStatistics
    from limiter.metrics.instruments import Labelled, Table

    Sources: TypeAlias = Callable[[ClientStatistics], Iterable[tuple[tuple[str, ...], object]]]
    """A function that returns objects to measure, each with its labels' values."""

_LABELS = {
    "memory": (),
    "producer": ("topic", "producer"),
    "consumer": ("topic", "subscription", "consumer"),
}


def _rows(
    group: str, sources: Sources, *rows: tuple[str, str, str, str], counts: bool = False
) -> Table[ClientStatistics]:
    made = counter if counts else gauge
    return tuple(
        made(
            f"floodgate.client.{group}.{name}",
            text,
            _reading(sources, attribute),
            *_LABELS[group],
            unit=unit,
        )
        for name, attribute, unit, text in rows
    )


def _reading(sources: Sources, attribute: str) -> Callable[[ClientStatistics], Labelled]:
    """Return a function that reads one attribute of all producers or consumers.

    Producers of the same name and topic, and consumers of the same name, subscription and topic,
    are summed: a metrics library has a single place for each.
    """

    def read(statistics: ClientStatistics) -> Labelled:
        sums: dict[tuple[str, ...], float] = defaultdict(float)
        for key, source in sources(statistics):
            sums[key] += float(getattr(source, attribute))
        return sums.items()

    return read


def _memory(statistics: ClientStatistics) -> Iterable[tuple[tuple[str, ...], object]]:
    yield (), statistics.memory


def _producers(statistics: ClientStatistics) -> Iterable[tuple[tuple[str, ...], object]]:
    for one in statistics.producers:
        yield (one.topic, one.producer_name), one


def _consumers(statistics: ClientStatistics) -> Iterable[tuple[tuple[str, ...], object]]:
    for one in statistics.consumers:
        for topic in one.topics:
            yield (topic.topic, one.subscription, one.consumer_name), topic


INSTRUMENTS: Table[ClientStatistics] = (
    *_rows(
        "memory",
        _memory,
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
        _memory,
        ("waits", "waits_total", "1", "Finished waits for memory"),
        ("wait_time", "wait_seconds_total", "s", "The total time of finished waits"),
        ("rejections", "rejected_total", "1", "Requests refused for lack of memory"),
        ("timeouts", "timeouts_total", "1", "Requests timed out waiting for memory"),
        counts=True,
    ),
    *_rows(
        "producer",
        _producers,
        ("connected", "is_connected", "1", "Whether the producer is attached"),
        ("pending_messages", "pending_messages", "1", "Messages without a receipt"),
        ("pending", "pending_bytes", "By", "The memory of messages without a receipt"),
        ("waiting_sends", "waiting_sends", "1", "Sends waiting for a queue slot or memory"),
    ),
    *_rows(
        "producer",
        _producers,
        ("messages_sent", "messages_sent_total", "1", "Acknowledged messages"),
        ("sent", "bytes_sent_total", "By", "Payload bytes of acknowledged messages"),
        ("send_failures", "send_failures_total", "1", "Messages that failed"),
        ("send_timeouts", "send_timeouts_total", "1", "Messages without a receipt in time"),
        ("queue_full", "queue_full_total", "1", "Sends refused for lack of a queue slot"),
        ("memory_full", "memory_full_total", "1", "Sends refused for lack of memory"),
        ("reconnections", "reconnections_total", "1", "Reconnections"),
        counts=True,
    ),
    *_rows(
        "consumer",
        _consumers,
        ("connected", "connected", "1", "Whether the consumer is attached"),
        ("messages_queued", "messages_queued", "1", "Messages arrived and not taken"),
        ("queued", "bytes_queued", "By", "The memory of messages arrived and not taken"),
        ("queue_size", "queue_size", "1", "Limit on queued and in-flight messages"),
        ("permits", "permits_outstanding", "1", "Permits of the broker"),
        ("unacknowledged", "unacknowledged", "1", "Entries with a running ack timeout"),
    ),
    *_rows(
        "consumer",
        _consumers,
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
"""All metrics.

Each is labeled with the client's name; those of producers and consumers also have their names and
topics.
"""
