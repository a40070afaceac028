"""Metrics of messages have recorded names, types and labels, and the values of live topics."""

from dataclasses import replace
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig, MetricKeys
from broker.message_metrics.gather import MessageMetrics, MetricSource
from broker.messages.stores.room import StoreBounds
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.topic import PersistentTopic
from proto.names import TopicName
from server.metrics.exposition import prometheus_lines
from tests.support.clocks.settle import settle
from tests.support.messages.producing import ProducingConnection, add, publish
from tests.support.processes.samples import SampleLine, prometheus_type, read_samples
from tests.support.stepwise import finished
from tests.unit.broker.messages.loading.test_loaded_topics import Loaded

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = ("m1", "other", "non-persistent://public/default/np1")
TOPICS = BrokerConfig.from_properties({}).metrics
ALL = replace(TOPICS, consumers=True, producers=True)
# Metrics without a source here: bookies, entry filters, transactions, refused dispatches, quota
# checks.
ABSENT = (
    "pulsar_txn_",
    "pulsar_storage_ledger_write_latency_",
    "pulsar_subscription_filter_",
    "pulsar_subscription_dispatch_throttled_",
    "pulsar_storage_backlog_quota_check_duration_seconds",
    "pulsar_broker_pending_bytes_to_dispatch",
    "pulsar_subscription_msg_drop_rate",
    "pulsar_subscription_msg_rate_expired",
    # Connection metrics are exported with the broker's other metrics.
    "pulsar_broker_throttled_connections",
)


def recorded(name: str) -> set[tuple[str, str, str]]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if not line.startswith(ABSENT)]
    return {(name, prometheus_type(name, kind), labels) for name, kind, labels in rows}


class Measured(Loaded):
    """Loaded topics, and their metrics."""

    def __init__(self, keys: MetricKeys = ALL) -> None:
        super().__init__()
        source = MetricSource("c1", keys, 60.0, self.topics, self.store.figures)
        self.metrics = MessageMetrics(source)
        self.cnx: ProducingConnection = self.connection()

    async def fill(self) -> None:
        """Publish to each topic; acknowledge a third of the messages."""
        await super().topic()
        await self.topics.unload(TopicName.parse("t"))
        for number, name in enumerate(NAMES):
            topic = await self.topics.get(TopicName.parse(name))
            producer = self.cnx.producer(number)
            add(topic, producer)
            asked = pb.CommandSubscribe(subscription="s", consumer_id=number)
            subscription = await topic.subscriptions.open(asked, "127.0.0.1")
            options = ConsumerOptions(number, f"c{number}", pb.CommandSubscribe.Shared)
            consumer = subscription.add_consumer(self.cnx, options)
            subscription.flow(consumer, 2)
            for sequence_id in range(3):
                publish(topic, producer, sequence_id)
            await settle()
            if topic.name.persistent:
                ids = pb.MessageIdData(ledgerId=min(consumer.pending)[0], entryId=0)
                subscription.acknowledge(consumer, [ids])
            topic.update_rates(60.0)

    def samples(self) -> list[SampleLine]:
        families = finished(self.metrics.gather())
        return read_samples("\n".join(line for one in families for line in prometheus_lines(one)))


@pytest.fixture
async def measured() -> Measured:
    measured = Measured()
    await measured.fill()
    return measured


def shapes(samples: list[SampleLine]) -> set[tuple[str, str, str]]:
    return {
        (one.name, one.type, ", ".join(sorted(one.labels)))
        for one in samples
        if not one.name.startswith("floodgate")
    }


def values(samples: list[SampleLine], **labels: str) -> dict[str, float]:
    """Return the values of samples with exactly these labels and the cluster."""
    return {one.name: one.value for one in samples if one.labels == {"cluster": "c1", **labels}}


async def test_namespace_metrics_have_the_recorded_names_types_and_labels() -> None:
    measured = Measured(replace(ALL, topics=False))
    await measured.fill()
    found = shapes(measured.samples())
    assert found == recorded("metrics-of-namespaces.txt")


async def test_topic_metrics_have_the_recorded_names_types_and_labels(measured: Measured) -> None:
    found = shapes(measured.samples())
    assert {one for one in found if "topic" in one[2].split(", ")} == recorded(
        "metrics-of-topics.txt"
    )
    assert {one[0] for one in found if one[2] == "cluster, namespace"} == {"pulsar_topics_count"}


@pytest.mark.parametrize("keys", [TOPICS, replace(TOPICS, topics=False), ALL], ids=str)
async def test_topic_consumer_and_producer_metrics_are_exported_only_by_their_keys(
    keys: MetricKeys,
) -> None:
    measured = Measured(keys)
    await measured.fill()
    labels = {label for one in measured.samples() for label in one.labels}
    assert ("topic" in labels, "subscription" in labels) == (keys.topics, keys.topics)
    assert ("consumer_id" in labels) == keys.consumers
    assert ("producer_id" in labels) == keys.producers


async def test_metric_values_are_the_figures_of_the_live_topics(measured: Measured) -> None:
    topic = await measured.topics.get(TopicName.parse("m1"))
    of_topic = {"namespace": "public/default", "topic": "persistent://public/default/m1"}
    samples = measured.samples()
    shown = values(samples, **of_topic)
    size = topic.statistics.size_bytes
    assert shown["pulsar_in_messages_total"] == 3
    assert shown["pulsar_in_bytes_total"] == shown["pulsar_storage_size"] == size
    assert shown["pulsar_rate_in"] == shown["pulsar_storage_write_rate"] == 3 / 60
    assert shown["pulsar_rate_out"] == 2 / 60
    assert shown["pulsar_msg_backlog"] == 2
    assert shown["pulsar_storage_write_latency_le_0_5"] == 3
    assert shown["pulsar_entry_size_le_128"] == shown["pulsar_entry_size_count"] == 3
    of_subscription = values(samples, **of_topic, subscription="s")
    assert of_subscription["pulsar_subscription_back_log"] == 2
    assert of_subscription["pulsar_subscription_unacked_messages"] == 1
    assert of_subscription["pulsar_out_messages_total"] == 2
    of_broker = values(samples)
    assert of_broker["pulsar_broker_topics_count"] == 3
    assert of_broker["pulsar_broker_rate_in"] == pytest.approx(9 / 60)
    assert of_broker["pulsar_broker_msg_backlog"] == 4
    assert of_broker["pulsar_broker_publish_latency_count"] == 6
    assert of_broker["floodgate_message_store_entries"] == 6
    assert of_broker["floodgate_metrics_topics_left_out"] == 0


async def test_storage_read_rates_cover_only_the_period_that_ended(measured: Measured) -> None:
    topic = await measured.topics.get(TopicName.parse("m1"))
    assert isinstance(topic, PersistentTopic)
    of_topic = {"namespace": "public/default", "topic": topic.full_name}
    topic.ledger.fetched_entries += 30
    before = values(measured.samples(), **of_topic)
    topic.update_rates(60.0)
    shown, of_broker = values(measured.samples(), **of_topic), values(measured.samples())
    topic.update_rates(60.0)
    later = values(measured.samples(), **of_topic)
    # As on a real broker: neither metric includes cached entries
    for name in ("storage_read_rate", "storage_read_cache_misses_rate"):
        assert before[f"pulsar_{name}"] == later[f"pulsar_{name}"] == 0
        assert shown[f"pulsar_{name}"] == of_broker[f"pulsar_broker_{name}"] == 0.5


async def test_topics_beyond_the_subject_bound_are_summed_by_namespace() -> None:
    # Capacity for M1 with the subscription, and no more.
    measured = Measured(replace(TOPICS, most_subjects=3))
    await measured.fill()
    samples = measured.samples()
    assert {one.labels["topic"] for one in samples if "topic" in one.labels} == {
        "persistent://public/default/m1"
    }
    rest = values(samples, namespace="public/default")
    assert (rest["pulsar_in_messages_total"], rest["pulsar_topics_count"]) == (6, 3)
    assert sum(one.value for one in samples if one.name == "pulsar_in_messages_total") == 9
    assert values(samples)["floodgate_metrics_topics_left_out"] == 2


async def test_publish_latencies_of_unloaded_topics_stay_in_the_brokers_count(measured) -> None:
    await measured.topics.unload(TopicName.parse("m1"))
    await measured.deletion.delete(TopicName.parse("other"), force=True)
    of_broker = values(measured.samples())
    assert of_broker["pulsar_broker_topics_count"] == 1
    assert of_broker["pulsar_broker_publish_latency_count"] == 6


async def test_a_full_message_store_exports_its_limit_and_its_refusals(measured: Measured) -> None:
    measured.store.room.bounds = StoreBounds(process=1)
    topic = await measured.topics.get(TopicName.parse("m1"))
    publish(topic, measured.cnx.producers[0], 9)
    of_broker = values(measured.samples())
    assert of_broker["floodgate_message_store_limit_bytes"] == 1
    assert of_broker["floodgate_message_store_refused_total"] >= 1


async def test_gathering_takes_two_steps_per_subscription() -> None:
    measured = Measured()
    topic = await measured.topic()
    before = len(list(measured.metrics.gather()))
    for number in range(20):
        topic.subscriptions.create(f"s{number}")
    # A pass for counting, a pass for writing
    assert len(list(measured.metrics.gather())) == before + 40
