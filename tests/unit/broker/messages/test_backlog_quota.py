"""Backlog quotas as recorded: by size and by age, with three policies."""

from dataclasses import replace
from math import inf

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.backlog_quota import (
    check_quota,
    enforce_quota,
    evict_oldest,
    exceeded_quotas,
)
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.resting import due_work
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS, BacklogQuota, EffectivePolicies, QuotaAction
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.messages.producing import (
    ProducingConnection,
    TopicOnHand,
    add,
    entry_bytes,
    publish,
)

HOLD, EXCEPTION, EVICT = QuotaAction.HOLD, QuotaAction.EXCEPTION, QuotaAction.EVICT
ENTRY_BYTES = 522


async def with_backlog(
    policies: EffectivePolicies, entries: int = 8, **keys: str
) -> tuple[PersistentTopic, ProducingConnection, TopicOnHand]:
    """Return a topic with a subscription that has a backlog, and a producing connection."""
    hand = TopicOnHand(policies, keys)
    topic, cnx = await hand.topic(), hand.connection()
    topic.subscriptions.create("s")
    made = cnx.producer()
    add(topic, made)
    spare = len(entry_bytes(b""))
    data = entry_bytes(b"x" * (ENTRY_BYTES - spare))
    for number in range(entries):
        topic.publish(made, number, 0, data, digest_of(parse_metadata(data)))
    await settle()
    cnx.take()
    return topic, cnx, hand


def size_quota(limit: int, action: QuotaAction) -> EffectivePolicies:
    return replace(DEFAULTS, size_quota=BacklogQuota(limit, action))


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (HOLD, pb.ProducerBlockedQuotaExceededError),
        (EXCEPTION, pb.ProducerBlockedQuotaExceededException),
    ],
)
async def test_producers_are_refused_and_closed_above_the_quota(
    action: QuotaAction, code: int
) -> None:
    topic, cnx, _ = await with_backlog(size_quota(2000, action))
    with pytest.raises(RequestError) as raised:
        check_quota(topic)
    assert raised.value.server_error == code
    assert raised.value.message.endswith(
        "TopicBacklogQuotaExceededException: "
        "Cannot create producer on topic with backlog quota exceeded"
    )
    assert len(topic.producers) == 1
    await enforce_quota(topic)
    (closed,) = cnx.take()
    assert closed.type == pb.BaseCommand.CLOSE_PRODUCER
    topic.subscriptions.clear_backlogs(internal=True)
    check_quota(topic)


async def test_an_eviction_leaves_the_recorded_backlog() -> None:
    topic, cnx, _ = await with_backlog(size_quota(2000, EVICT))
    check_quota(topic)
    await enforce_quota(topic)
    (subscription,) = topic.subscriptions
    assert subscription.cursor.backlog == 4
    assert cnx.take() == []
    await enforce_quota(topic)
    assert subscription.cursor.backlog == 4
    assert topic.evictions == {"size": 1, "time": 0}


async def test_below_the_quota_no_producer_is_refused_or_closed() -> None:
    topic, cnx, _ = await with_backlog(size_quota(100_000, HOLD))
    check_quota(topic)
    await enforce_quota(topic)
    assert (cnx.take(), exceeded_quotas(topic)) == ([], [])


async def test_a_topic_without_subscriptions_has_no_backlog() -> None:
    topic, _, _ = await with_backlog(size_quota(0, HOLD))
    for subscription in topic.subscriptions:
        subscription.delete()  # type: ignore[attr-defined]
    assert exceeded_quotas(topic) == []


async def test_a_message_in_the_open_ledger_has_no_age() -> None:
    policies = replace(DEFAULTS, age_quota=BacklogQuota(60, HOLD))
    topic, _, hand = await with_backlog(policies)
    hand.clock.advance(100)
    assert exceeded_quotas(topic) == []
    hand.store.now_ms = hand.clock.wall_ms
    topic.ledger.roll()
    hand.clock.advance(61)
    assert exceeded_quotas(topic) == [policies.age_quota]


async def test_a_check_finds_the_oldest_backlog_message_in_a_closed_ledger() -> None:
    topic, _, hand = await with_backlog(DEFAULTS)
    hand.store.now_ms = hand.clock.wall_ms
    await enforce_quota(topic)
    assert topic.oldest_backlog is None
    topic.ledger.roll()
    assert due_work(topic, 0)["enforce_quotas"] == -inf
    await enforce_quota(topic)
    assert topic.oldest_backlog == ("s", hand.clock.wall_ms())
    assert due_work(topic, 0)["enforce_quotas"] == inf
    topic.subscriptions.clear_backlogs(internal=True)
    check_quota(topic)
    assert topic.oldest_backlog is None


async def test_a_precise_check_uses_the_publish_time_of_the_message() -> None:
    policies = replace(DEFAULTS, age_quota=BacklogQuota(60, HOLD))
    topic, _, _ = await with_backlog(policies, preciseTimeBasedBacklogQuotaCheck="true")
    assert exceeded_quotas(topic) == [policies.age_quota]


async def test_the_eviction_policy_skips_messages_above_the_age_quota() -> None:
    policies = replace(DEFAULTS, age_quota=BacklogQuota(60, EVICT))
    topic, _, _ = await with_backlog(policies, preciseTimeBasedBacklogQuotaCheck="true")
    await enforce_quota(topic)
    (subscription,) = topic.subscriptions
    assert subscription.cursor.backlog == 0


@pytest.mark.parametrize("by", ["size", "age"])
async def test_the_compaction_backlog_counts_but_is_not_evicted(by: str) -> None:
    quota = {f"{by}_quota": BacklogQuota(2_000 if by == "size" else 60, EVICT)}
    policies, precise = replace(DEFAULTS, **quota), {"preciseTimeBasedBacklogQuotaCheck": "true"}
    topic, _, _ = await with_backlog(policies, **precise)
    compaction = topic.subscriptions.create(SUBSCRIPTION, earliest=True)  # type: ignore[call-arg]
    (subscription, _) = topic.subscriptions
    subscription.skip(5)
    await enforce_quota(topic)
    assert compaction.cursor.backlog == 8
    assert subscription.cursor.backlog == (3 if by == "size" else 0)
    subscription.skip(3)
    assert exceeded_quotas(topic) == list(quota.values())
    await enforce_quota(topic)
    assert compaction.cursor.backlog == 8
    assert sum(topic.evictions.values()) == (by == "age")


async def test_an_eviction_for_a_full_store_leaves_the_messages_of_later_ledgers() -> None:
    topic, cnx, _ = await with_backlog(size_quota(100_000, EVICT), entries=10)
    (subscription,) = topic.subscriptions
    consumer = subscription.add_consumer(cnx, ConsumerOptions(1, "c", pb.CommandSubscribe.Shared))
    ledger_id = topic.ledger.ledgers[0].ledger_id
    subscription.acknowledge(
        consumer, [pb.MessageIdData(ledgerId=ledger_id, entryId=number) for number in range(1, 10)]
    )
    topic.ledger.roll()
    for number in range(10, 15):
        publish(topic, cnx.producers[1], number)
    evict_oldest(topic)
    assert subscription.cursor.backlog == 5
    await settle()


async def test_an_eviction_for_a_full_store_spares_the_compaction_backlog() -> None:
    topic, _, _ = await with_backlog(size_quota(100_000, EVICT))
    compaction = topic.subscriptions.create(SUBSCRIPTION, earliest=True)  # type: ignore[call-arg]
    evict_oldest(topic)
    assert [one.cursor.backlog for one in topic.subscriptions] == [0, 8]
    assert compaction.cursor.backlog == 8
