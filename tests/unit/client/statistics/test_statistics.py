"""The figures of a client, as values, for Prometheus and for OpenTelemetry."""

import asyncio
from dataclasses import replace
from unittest.mock import Mock

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from prometheus_client import CollectorRegistry, generate_latest

from client.consumers.statistics import ConsumerStatistics, TopicConsumerStatistics
from client.context import Part
from client.producers.statistics import ProducerStatistics
from client.statistics.instruments import INSTRUMENTS
from client.statistics.metrics import ClientMetrics
from client.statistics.otel import create_instruments
from client.statistics.statistics import (
    ClientStatistics,
    StatisticsReader,
    client_name,
    client_statistics,
)
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.clocks.manual_clock import ManualClock

TOPIC = TopicConsumerStatistics(
    topic="t",
    connected=False,
    messages_received=7,
    bytes_received=70,
    messages_queued=3,
    bytes_queued=30,
    queue_size=12,
    queue_growths=4,
    queue_shrinks=1,
    permits_outstanding=9,
    acknowledgements_pending=0,
    unacknowledged=0,
    negatively_acknowledged=0,
    redelivery_requests=0,
    incomplete_messages=0,
    broken_entries=0,
    reconnections=2,
)
PRODUCER = ProducerStatistics(
    "t", "p", is_connected=True, pending_messages=5, waiting_sends=2, messages_sent_total=11
)
CONSUMER = ConsumerStatistics("s", "c", (TOPIC,), waiting=1, dead_letters=0)


class OnePart:
    """A producer or consumer with given figures."""

    def __init__(self, figures: object) -> None:
        self._figures = figures

    async def close(self) -> None:
        """No-op."""

    def statistics(self) -> object:
        return self._figures


class OneClient:
    """A client with a producer and a consumer, whose limit is exhausted and has a waiter."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.memory = MemoryLimitController(100, clock=clock)
        self.held = self.memory.force_reserve(150)
        self.memory.request(10)
        clock.advance(3.0)
        self.parts: list[Part] = [OnePart(PRODUCER), OnePart(CONSUMER)]

    def statistics(self) -> ClientStatistics:
        return client_statistics(self.parts, self.memory)


def test_client_statistics_contain_the_producers_consumers_and_memory() -> None:
    found = OneClient().statistics()
    assert (found.producers, found.consumers) == ((PRODUCER,), (CONSUMER,))
    assert (found.memory.usage_bytes, found.memory.oldest_waiter_seconds) == (150, 3.0)


def test_waiting_lists_every_waiting_producer_and_consumer_with_its_cause() -> None:
    said = [str(one) for one in OneClient().statistics().waiting()]
    assert said == [
        "producer 'p' of t waits for a slot in its queue, or memory (2)",
        "producer 'p' of t waits for receipts (5)",
        "consumer 'c' of 's' waits for messages (1)",
        "consumer 'c' of 's' on t waits for a connection (1)",
    ]


def test_an_idle_client_lists_no_waiter() -> None:
    client = OneClient()
    client.parts = [OnePart(ProducerStatistics("t", is_connected=True))]
    assert list(client.statistics().waiting()) == []


async def test_prometheus_exports_memory_producer_and_consumer_figures() -> None:
    client = OneClient()
    registry = CollectorRegistry()
    registry.register(ClientMetrics(client, "mine"))
    text = generate_latest(registry).decode()
    consumer = '{client="mine",consumer="c",subscription="s",topic="t"}'
    for line in (
        'floodgate_client_memory_limit_bytes{client="mine"} 100.0',
        'floodgate_client_memory_usage_bytes{client="mine"} 150.0',
        'floodgate_client_memory_oldest_waiter_seconds{client="mine"} 3.0',
        'floodgate_client_memory_rejections_total{client="mine"} 0.0',
        'floodgate_client_producer_messages_sent_total{client="mine",producer="p",topic="t"} 11.0',
        f"floodgate_client_consumer_queue_size{consumer} 12.0",
        f"floodgate_client_consumer_queue_growths_total{consumer} 4.0",
    ):
        assert line in text.splitlines()


async def test_figures_of_consumers_with_the_same_name_are_summed() -> None:
    client = OneClient()
    client.parts.append(OnePart(CONSUMER))
    registry = CollectorRegistry()
    registry.register(ClientMetrics(client, "mine"))
    names = {"client": "mine", "consumer": "c", "subscription": "s", "topic": "t"}
    assert registry.get_sample_value("floodgate_client_consumer_queue_size", names) == 24


async def test_opentelemetry_exports_every_instrument() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    create_instruments(provider.get_meter("test"), OneClient(), "mine")
    data = reader.get_metrics_data()
    assert isinstance(data, MetricsData)
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    assert {one.name for one in metrics} == {one.name for one in INSTRUMENTS}
    found = {
        one.name: [(point.value, point.attributes) for point in one.data.data_points]  # type: ignore[union-attr]
        for one in metrics
    }
    assert found["floodgate.client.memory.usage"] == [(150, {"client": "mine"})]
    assert found["floodgate.client.producer.waiting_sends"] == [
        (2, {"client": "mine", "topic": "t", "producer": "p"})
    ]
    provider.shutdown()


async def test_clients_without_a_name_have_distinct_metric_labels() -> None:
    clients = OneClient(), OneClient()
    registry = CollectorRegistry()
    for client in clients:
        registry.register(ClientMetrics(client))
    lines = generate_latest(registry).decode().splitlines()
    series = [line for line in lines if not line.startswith("#")]
    assert len(set(series)) == len(series) > 0
    name = client_name(clients[0])
    assert registry.get_sample_value("floodgate_client_memory_limit_bytes", {"client": name}) == 100


async def test_an_opentelemetry_collection_reads_the_client_statistics_once() -> None:
    client = Mock(statistics=Mock(side_effect=OneClient().statistics))
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    create_instruments(provider.get_meter("test"), client)
    for _ in range(3):
        reader.get_metrics_data()
    assert client.statistics.call_count == 3
    provider.shutdown()


async def test_a_read_from_another_thread_runs_in_the_event_loop() -> None:
    client = OneClient()
    reader = StatisticsReader(client)
    found = await asyncio.to_thread(reader.read)
    assert replace(found, memory=client.memory.statistics()) == client.statistics()


async def test_an_error_in_the_event_loop_is_raised_in_the_reading_thread() -> None:
    client = OneClient()
    del client.parts
    with pytest.raises(AttributeError):
        await asyncio.to_thread(StatisticsReader(client).read)


def test_reading_after_the_event_loop_ended_raises_timeout_error() -> None:
    async def made() -> StatisticsReader:
        return StatisticsReader(OneClient())

    def ended() -> StatisticsReader:
        return asyncio.run(made())

    async def elsewhere() -> None:
        reader = await asyncio.to_thread(ended)
        with pytest.raises(TimeoutError, match="the client's loop has ended"):
            reader.read()

    asyncio.run(elsewhere())


async def test_no_metrics_are_exported_after_the_event_loop_ended() -> None:
    registry, reader = CollectorRegistry(), InMemoryMetricReader()
    provider = MeterProvider([reader])

    async def made() -> None:
        client = OneClient()
        registry.register(ClientMetrics(client))
        create_instruments(provider.get_meter("test"), client)

    await asyncio.to_thread(asyncio.run, made())
    text, data = generate_latest(registry), reader.get_metrics_data()
    assert (text, data) == (b"", None)
    provider.shutdown()


def test_every_instrument_has_a_unique_name_and_a_single_value() -> None:
    statistics = OneClient().statistics()
    assert len({one.prometheus_name for one in INSTRUMENTS}) == len(INSTRUMENTS)
    assert {len(list(one.read(statistics))) for one in INSTRUMENTS} == {1}
