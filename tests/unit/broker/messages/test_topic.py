"""Topics store, acknowledge and deliver published messages."""

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.position import Position, from_wire
from broker.messages.producer import Producer
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import ENTRY_COST_BYTES, StoreBounds
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS, BacklogQuota, EffectivePolicies, QuotaAction, Rate
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.messages.producing import (
    ProducingConnection,
    SlowLedger,
    TopicOnHand,
    add,
    entry_bytes,
    publish,
)

Type = pb.BaseCommand


def receipts(cnx: ProducingConnection) -> list[tuple[int, Position]]:
    found = [one.send_receipt for one in cnx.take() if one.type == Type.SEND_RECEIPT]
    return [
        (one.sequence_id, from_wire(one.message_id.ledgerId, one.message_id.entryId))
        for one in found
    ]


async def producing(
    hand: TopicOnHand, *, slow: bool = False
) -> tuple[PersistentTopic, ProducingConnection, Producer]:
    """Return a topic, a connection, and its producer."""
    topic, cnx = await hand.topic(slow=slow), hand.connection()
    made = cnx.producer()
    add(topic, made)
    cnx.take()
    return topic, cnx, made


def of_two_messages(policies: EffectivePolicies = DEFAULTS) -> TopicOnHand:
    """Return a topic whose store has capacity for two messages."""
    size = len(entry_bytes(producer_name="p1")) + ENTRY_COST_BYTES
    return TopicOnHand(policies, store=MemoryMessageStore(StoreBounds(topic=2 * size)))


async def test_messages_of_a_turn_have_receipts_in_order() -> None:
    topic, cnx, made = await producing(TopicOnHand())
    for number in range(3):
        publish(topic, made, number)
    ledger_id = topic.ledger.last_confirmed.ledger_id
    assert receipts(cnx) == [(number, Position(ledger_id, number)) for number in range(3)]
    assert (topic.statistics.messages, made.statistics.messages) == (3, 3)
    assert topic.statistics.size_bytes == topic.ledger.size_bytes
    await settle()


async def test_subscriptions_are_notified_once_per_turn_of_published_entries() -> None:
    topic, _, made = await producing(TopicOnHand())
    told: list[int] = []
    topic.subscriptions.entries_added = lambda: told.append(1)  # type: ignore[method-assign]
    for number in range(3):
        publish(topic, made, number)
    assert told == []
    await settle()
    assert told == [1]


async def test_a_receipt_waits_until_its_entry_is_stored() -> None:
    hand = TopicOnHand()
    topic, cnx, made = await producing(hand, slow=True)
    for number in range(3):
        publish(topic, made, number)
    assert receipts(cnx) == []
    assert (made.pending, cnx.publishes.pending) == (3, 3)
    ledger = topic.ledger
    assert isinstance(ledger, SlowLedger)
    last = ledger.last_confirmed
    hand.clock.advance(0.003)
    ledger.confirm(Position(last.ledger_id, 1))
    assert [sequence_id for sequence_id, _ in receipts(cnx)] == [0, 1]
    assert (made.pending, cnx.publishes.pending) == (1, 1)
    assert topic.latency.counts[2] == 2
    ledger.confirm(last)
    assert [sequence_id for sequence_id, _ in receipts(cnx)] == [2]
    assert cnx.publishes.size_bytes == 0


async def test_a_failed_ledger_drops_unstored_messages_and_reports_its_topic_broken() -> None:
    hand = TopicOnHand()
    topic, cnx, made = await producing(hand, slow=True)
    publish(topic, made)
    topic.ledger.fail()  # type: ignore[attr-defined]
    assert hand.broken == [topic]
    assert (made.pending, cnx.publishes.pending) == (0, 0)
    assert receipts(cnx) == []


async def test_a_full_store_closes_producers_and_refuses_new_producers_for_a_while() -> None:
    hand = of_two_messages()
    topic, cnx, made = await producing(hand)
    topic.subscriptions.create("s")
    for number in range(3):
        publish(topic, made, number)
    kinds = [one.type for one in cnx.take()]
    assert kinds == [Type.SEND_RECEIPT, Type.SEND_RECEIPT, Type.CLOSE_PRODUCER]
    with pytest.raises(RequestError) as raised:
        topic.check_room()
    assert raised.value.server_error == pb.ProducerBlockedQuotaExceededError
    hand.clock.advance(1.5)
    topic.check_room()
    await settle()


async def test_a_full_store_first_drops_unneeded_entries() -> None:
    topic, cnx, made = await producing(of_two_messages())
    for number in range(5):
        publish(topic, made, number)
    assert [sequence_id for sequence_id, _ in receipts(cnx)] == [0, 1, 2, 3, 4]
    await settle()


async def test_a_full_store_evicts_the_oldest_backlog_under_the_eviction_policy() -> None:
    policies = replace(DEFAULTS, size_quota=BacklogQuota(-1, QuotaAction.EVICT))
    topic, cnx, made = await producing(of_two_messages(policies))
    topic.subscriptions.create("s")
    for number in range(3):
        publish(topic, made, number)
    assert [sequence_id for sequence_id, _ in receipts(cnx)] == [0, 1, 2]
    (subscription,) = topic.subscriptions
    assert subscription.cursor.backlog == 1
    await settle()


async def test_a_terminated_topic_closes_its_producers_and_stays_terminated() -> None:
    hand = TopicOnHand()
    topic, cnx, _ = await producing(hand)
    topic.terminate()
    topic.terminate()
    assert [one.type for one in cnx.take()] == [Type.CLOSE_PRODUCER]
    hand.store.close_ledger(topic.full_name)
    assert (await hand.topic()).terminated


async def test_a_publish_rate_pauses_the_connection() -> None:
    hand = TopicOnHand(policies=replace(DEFAULTS, publish_rate=Rate(messages=2)))
    topic, cnx, made = await producing(hand)
    publish(topic, made)
    assert cnx.gate.open
    publish(topic, made, 1)
    assert not cnx.gate.open
    assert topic.rate.limited_times == 1
    hand.policies = DEFAULTS
    topic.policies_changed()
    assert cnx.gate.open
    await settle()


@pytest.mark.parametrize("at_whose_wish", ["the client's", "the broker's"])
async def test_a_connection_paused_by_the_rate_of_a_closed_producer_resumes(
    at_whose_wish: str,
) -> None:
    """Upstream: PIP-434 part 2 case 1."""
    # Given a producer that was paused for a second, on a connection with another one
    hand = TopicOnHand(policies=replace(DEFAULTS, publish_rate=Rate(messages=1)))
    topic, cnx, guilty = await producing(hand)
    add(topic, cnx.producer(2))
    publish(topic, guilty)
    assert not cnx.gate.open
    if at_whose_wish == "the client's":
        guilty.close(7)
    else:
        guilty.disconnect()
    assert list(cnx.producers) == [2]
    hand.clock.advance(0.99)
    assert not cnx.gate.open
    hand.clock.advance(0.02)
    assert cnx.gate.open
    await settle()
