"""SUBSCRIBE: its checks and their order, pinged rivals, and commands while it is in flight."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.subscribing import (
    check_metadata,
    check_subscribe,
    displace_dead,
    options_of,
)
from broker.messages.subscriptions.consumer import SubType
from broker.policies.effective import DEFAULTS, Rate
from proto.names import TopicName
from server.connection.request_errors import RequestError
from tests.support.messages.consumers import consume, subscribed_topic
from tests.unit.broker.commands.test_producing import client, producer_command, subscribe, topic
from tests.unit.broker.messages.subscriptions.dispatchers.test_key_shared import sticky

EXCLUSIVE, SHARED = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
KEY_SHARED = pb.CommandSubscribe.Key_Shared


@pytest.mark.parametrize(
    ("has", "ranges", "wants", "wanted", "asked"),
    [
        (EXCLUSIVE, None, EXCLUSIVE, None, 1),
        (EXCLUSIVE, None, SHARED, None, 0),
        (SHARED, None, SHARED, None, 0),
        (KEY_SHARED, None, KEY_SHARED, None, 0),
        (KEY_SHARED, sticky((0, 9)), KEY_SHARED, sticky((9, 20)), 1),
        (KEY_SHARED, sticky((0, 9)), KEY_SHARED, sticky((10, 20)), 0),
        (KEY_SHARED, sticky((0, 9)), KEY_SHARED, None, 0),
        (KEY_SHARED, None, KEY_SHARED, sticky((0, 9)), 0),
        (KEY_SHARED, sticky((0, 9)), EXCLUSIVE, None, 0),
    ],
)
async def test_only_a_consumer_that_conflicts_with_the_newcomer_is_pinged(
    has: SubType.ValueType,
    ranges: pb.KeySharedMeta | None,
    wants: SubType.ValueType,
    wanted: pb.KeySharedMeta | None,
    asked: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, subscription = await subscribed_topic()
    _, cnx = consume(subscription, has, key_shared=ranges)
    pings = []

    async def answers_ping() -> bool:
        pings.append(cnx)
        return True

    monkeypatch.setattr(cnx, "answers_ping", answers_ping)
    newcomer = pb.CommandSubscribe(subType=wants, keySharedMeta=wanted)
    await displace_dead(subscription, newcomer)
    assert len(pings) == asked


def checked(domain: str = "persistent", **fields: Any) -> None:
    """Check a SUBSCRIBE for a topic of a domain."""
    topic: Any = SimpleNamespace(name=TopicName.parse(f"{domain}://t/n/x"), policies=DEFAULTS)
    check_subscribe(topic, pb.CommandSubscribe(**fields))


def test_only_a_persistent_topic_requires_a_subscription_name() -> None:
    checked("non-persistent")
    with pytest.raises(RequestError):
        checked("persistent")


@pytest.mark.parametrize(("persistent", "epoch"), [(True, 3), (False, -1)])
def test_the_consumer_epoch_counts_only_on_a_persistent_topic(persistent: bool, epoch: int) -> None:
    asked = pb.CommandSubscribe(subType=EXCLUSIVE, consumer_epoch=3)
    assert options_of(asked, persistent=persistent).epoch == epoch


def test_a_compacted_read_of_a_non_persistent_topic_is_refused() -> None:
    with pytest.raises(RequestError, match="only valid on persistent topics") as refused:
        checked("non-persistent", subscription="s", subType=EXCLUSIVE, read_compacted=True)
    assert refused.value.server_error == pb.NotAllowedError


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ("persistent", "pulsar.dedup"),
        ("persistent", "pulsar.repl"),
        ("non-persistent", "pulsar.repl"),
    ],
)
def test_a_reserved_subscription_name_is_refused(domain: str, name: str) -> None:
    with pytest.raises(RequestError, match="reserved subscription name") as refused:
        checked(domain, subscription=name)
    assert refused.value.server_error == pb.ProducerBusy


def test_the_name_of_deduplication_is_free_on_a_non_persistent_topic() -> None:
    checked("non-persistent", subscription="pulsar.dedup")


BLANK = ("", " ", "\t", "\n", "\v", "\x1c", "\x1f", "\u1680", "\u2028", "\u205f", "\u3000", " \t ")
NAMES = ("\0", "\x85", "\xa0", "\u2007", "\u200b", "\ufeff", " a ")


@pytest.mark.parametrize("name", BLANK)
def test_a_subscription_name_that_java_calls_blank_is_refused_as_empty(name: str) -> None:
    with pytest.raises(RequestError, match="Empty subscription name"):
        checked(subscription=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_subscription_name_that_java_does_not_call_blank_is_accepted(name: str) -> None:
    checked(subscription=name)


def test_a_disallowed_type_is_refused_before_an_empty_subscription_name() -> None:
    policies = replace(DEFAULTS, subscription_types=frozenset(("Shared",)))
    topic: Any = SimpleNamespace(name=TopicName.parse("t"), policies=policies)
    with pytest.raises(RequestError, match="doesn't support Exclusive"):
        check_subscribe(topic, pb.CommandSubscribe(subType=EXCLUSIVE))


def test_metadata_are_limited_by_the_characters_of_their_keys_and_values_as_java_counts() -> None:
    asked = pb.CommandSubscribe(metadata=[{"key": "k", "value": "\U0001f600" * 2}])
    check_metadata(asked, 5)
    with pytest.raises(RequestError, match="metadata has a max size of 4 bytes") as refused:
        check_metadata(asked, 4)
    assert refused.value.server_error == pb.MetadataError


# -- commands while a SUBSCRIBE is in flight ------------------------------------------------------

Type = pb.BaseCommand


def close(request_id: int) -> pb.BaseCommand:
    body = pb.CommandCloseConsumer(request_id=request_id, consumer_id=1)
    return pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=body)


async def test_a_refused_subscribe_is_not_answered_if_its_consumer_was_closed_meanwhile() -> None:
    found = await client()
    answers = await found.ask(subscribe(1, force_topic_creation=False, topic="missing"), close(2))
    assert [one.success.request_id for one in answers] == [2]


async def test_an_id_whose_subscribe_in_flight_was_closed_is_refused_until_it_ends() -> None:
    found = await client()
    closed, refused = await found.ask(subscribe(1), close(2), subscribe(3))
    assert (closed.success.request_id, refused.error.request_id) == (2, 3)
    assert refused.error.error == pb.UnknownError
    assert refused.error.message == "Consumer that failed is already present on the connection"
    (answer,) = await found.ask(subscribe(4))
    assert answer.success.request_id == 4


async def test_statistics_of_a_consumer_whose_subscribe_is_in_flight_are_not_found() -> None:
    found = await client()
    asked = pb.CommandConsumerStats(request_id=2, consumer_id=1)
    statistics = pb.BaseCommand(type=Type.CONSUMER_STATS, consumerStats=asked)
    answer, success = await found.ask(subscribe(1), statistics)
    failed = answer.consumerStatsResponse
    assert (failed.request_id, failed.error_code) == (2, pb.ConsumerNotFound)
    assert failed.error_message == "Consumer 1 not found"
    assert success.success.request_id == 1


# -- the order of checks --------------------------------------------------------------------------


async def test_a_refused_subscription_name_comes_after_the_creation_of_the_topic() -> None:
    found = await client()
    (answer,) = await found.ask(subscribe(1, topic="new", subscription=""))
    assert answer.error.message == "Empty subscription name"
    assert found.cnx.parts.loaded_topics.loaded(TopicName.parse("new")) is not None  # type: ignore[attr-defined]
    missing = subscribe(2, topic="x", subscription="", force_topic_creation=False)
    (answer,) = await found.ask(missing)
    assert answer.error.error == pb.TopicNotFound


async def test_the_topic_name_is_checked_even_for_an_id_in_use() -> None:
    found = await client()
    await found.ask(subscribe(1))
    (answer,) = await found.ask(subscribe(2, topic="persistent://a//b"))
    assert answer.error.error == pb.InvalidTopicName


async def test_a_refused_subscription_type_is_not_counted_by_the_subscribe_rate() -> None:
    found = await client()
    await found.ask(subscribe(1, consumer_name="c"))
    rate, shared = Rate(1, period_seconds=1000), frozenset(("Shared",))
    topic(found).policies = replace(DEFAULTS, subscribe_rate=rate, subscription_types=shared)
    topic(found).subscriptions.policies_changed()
    other = {"consumer_id": 2, "subscription": "other", "consumer_name": "c"}
    (answer,) = await found.ask(subscribe(2, **other))
    assert "doesn't support Exclusive" in answer.error.message
    (answer,) = await found.ask(subscribe(3, **other, subType=SHARED))
    assert answer.type == Type.SUCCESS


@pytest.mark.parametrize("field", ["metadata", "schema"])
async def test_a_repeated_key_in_a_map_closes_the_connection(field: str) -> None:
    twice = [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]
    schema = {"name": "", "schema_data": b"", "type": pb.Schema.String, "properties": twice}
    found = await client()
    await found.ask(subscribe(1, **{field: twice if field == "metadata" else schema}))
    assert found.closed


async def test_of_a_repeated_subscription_property_the_first_value_counts() -> None:
    found = await client()
    twice = [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]
    await found.ask(subscribe(1, subscription_properties=twice))
    (subscription,) = topic(found).subscriptions
    assert subscription.cursor.properties == {"k": "a"}


# -- commands that a client's protocol version lacks ----------------------------------------------


@pytest.mark.parametrize(("version", "told"), [(11, []), (12, [Type.ACTIVE_CONSUMER_CHANGE])])
async def test_an_active_consumer_is_told_so_from_protocol_version_12_on(version, told) -> None:
    found = await client(activeConsumerFailoverDelayTimeMillis="0")
    found.cnx.protocol_version = version  # type: ignore[attr-defined]
    answers = await found.ask(subscribe(1, subType=pb.CommandSubscribe.Failover))
    assert [one.type for one in answers if one.type != Type.SUCCESS] == told


@pytest.mark.parametrize(("version", "told"), [(8, []), (9, [Type.REACHED_END_OF_TOPIC])])
async def test_the_end_of_a_topic_is_told_from_protocol_version_9_on(version, told) -> None:
    found = await client()
    found.cnx.protocol_version = version  # type: ignore[attr-defined]
    await found.ask(subscribe(1))
    topic(found).terminate()
    assert [one.type for one in found.answers()] == told


@pytest.mark.parametrize("kind", ["producer", "consumer"])
@pytest.mark.parametrize(("version", "closed"), [(4, True), (5, False)])
async def test_an_unload_closes_the_connection_below_protocol_version_5(
    version: int, closed: bool, kind: str
) -> None:
    found = await client()
    cnx: Any = found.cnx
    cnx.protocol_version = version
    await found.ask(subscribe(1) if kind == "consumer" else producer_command())
    await cnx.parts.loaded_topics.unload(TopicName.parse("t"))
    assert (found.answers() == [], found.closed) == (closed, closed)
