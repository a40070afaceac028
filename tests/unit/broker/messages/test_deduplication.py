"""Deduplication, as recorded: by the highest sequence id of a producer's name."""

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.deduplication import CURSOR, Verdict
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.position import Position, from_wire
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import ENTRY_COST_BYTES, StoreBounds
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS
from tests.support.clocks.settle import settle
from tests.support.messages.producing import (
    ProducingConnection,
    TopicOnHand,
    add,
    entry_bytes,
    publish,
)

ON = replace(DEFAULTS, deduplication=True)
DUPLICATE = Position(-1, -1)
COST = len(entry_bytes(producer_name="p1")) + ENTRY_COST_BYTES


def answered(cnx: ProducingConnection) -> list[Position]:
    ids = [one.send_receipt.message_id for one in cnx.take() if one.HasField("send_receipt")]
    return [from_wire(one.ledgerId, one.entryId) for one in ids]


async def producing(
    hand: TopicOnHand, *, slow: bool = False
) -> tuple[PersistentTopic, ProducingConnection]:
    topic, cnx = await hand.topic(slow=slow), hand.connection()
    add(topic, cnx.producer())
    cnx.take()
    return topic, cnx


async def test_a_sequence_id_not_above_the_highest_is_a_duplicate_and_gaps_are_accepted() -> None:
    topic, cnx = await producing(TopicOnHand(ON))
    for sequence_id in (0, 1, 7, 4):
        publish(topic, cnx.producers[1], sequence_id)
    found = answered(cnx)
    assert [one == DUPLICATE for one in found] == [False, False, False, True]
    assert topic.statistics.messages == 4  # Duplicates count, as upstream.
    await settle()


async def test_a_batch_is_a_duplicate_as_a_whole() -> None:
    topic, cnx = await producing(TopicOnHand(ON))
    publish(topic, cnx.producers[1], 8, highest=10)
    publish(topic, cnx.producers[1], 9, highest=11)
    publish(topic, cnx.producers[1], 11)
    assert [one == DUPLICATE for one in answered(cnx)] == [False, True, False]
    assert topic.deduplication.last_sequence_id("p1") == 11
    await settle()


async def test_without_the_policy_no_message_is_a_duplicate() -> None:
    topic, cnx = await producing(TopicOnHand())
    for sequence_id in (5, 5, 3):
        publish(topic, cnx.producers[1], sequence_id)
    assert DUPLICATE not in answered(cnx)
    assert CURSOR not in topic.ledger.cursors
    await settle()


async def test_a_copy_of_a_message_being_stored_is_refused_with_an_error() -> None:
    topic, cnx = await producing(TopicOnHand(ON), slow=True)
    publish(topic, cnx.producers[1], 0)
    cnx.take()
    publish(topic, cnx.producers[1], 0)
    (answer,) = cnx.take()
    assert answer.send_error.error == pb.PersistenceError


async def test_a_message_lost_with_its_ledger_is_new_when_sent_again() -> None:
    topic, cnx = await producing(TopicOnHand(ON), slow=True)
    publish(topic, cnx.producers[1], 0)
    topic.ledger.fail()  # type: ignore[attr-defined]
    assert topic.deduplication.judge("p1", 0) is Verdict.NEW


@pytest.mark.parametrize("saved", [True, False])
async def test_sequence_ids_survive_an_unload_and_a_crash(saved: bool) -> None:
    hand = TopicOnHand(ON)
    topic, cnx = await producing(hand)
    for sequence_id in (3, 8):
        publish(topic, cnx.producers[1], sequence_id)
    # Without a snapshot, sequence ids are read from the entries.
    if saved:
        topic.deduplication.save()
    hand.store.close_ledger(topic.full_name)
    again = await hand.topic()
    assert again.deduplication.last_sequence_id("p1") == 8
    assert again.deduplication.judge("p1", 8) is Verdict.DUPLICATE
    assert again.deduplication.judge("p1", 9) is Verdict.NEW
    await settle()


async def test_a_snapshot_is_taken_after_the_interval_and_with_each_new_ledger() -> None:
    hand = TopicOnHand(ON, keys={"brokerDeduplicationEntriesInterval": "3"})
    topic, cnx = await producing(hand)
    for sequence_id in range(4):
        publish(topic, cnx.producers[1], sequence_id)
    assert topic.ledger.cursors[CURSOR].properties == {"p1": "2"}
    topic.ledger.roll()
    publish(topic, cnx.producers[1], 4)
    assert topic.ledger.cursors[CURSOR].properties == {"p1": "3"}
    await settle()


async def test_disabling_deduplication_forgets_the_sequence_ids() -> None:
    hand = TopicOnHand(ON)
    topic, cnx = await producing(hand)
    publish(topic, cnx.producers[1], 5)
    hand.policies = DEFAULTS
    topic.policies_changed()
    assert CURSOR not in topic.ledger.cursors
    assert topic.deduplication.last_sequence_id("p1") == -1
    hand.policies = ON
    topic.policies_changed()
    assert topic.deduplication.judge("p1", 5) is Verdict.NEW
    await settle()


async def test_the_remembered_producers_are_bounded_by_the_key() -> None:
    hand = TopicOnHand(ON, keys={"brokerDeduplicationMaxNumberOfProducers": "2"})
    dedup = (await hand.topic()).deduplication
    for number, name in enumerate(("a", "b", "a", "c")):
        dedup.begun(name, number)
        dedup.stored(name, number, Position(1, number))
    assert [dedup.last_sequence_id(name) for name in "abc"] == [2, -1, 3]


async def test_a_message_refused_by_a_full_store_is_new_and_a_message_in_flight_is_not() -> None:
    hand = TopicOnHand(ON, store=MemoryMessageStore(StoreBounds(topic=2 * COST)))
    topic, cnx = await producing(hand, slow=True)
    topic.subscriptions.create("s")
    for sequence_id in range(3):
        publish(topic, cnx.producers[1], sequence_id)  # The third exceeds the capacity.
    cnx.take()
    add(topic, cnx.producer())
    for sequence_id in range(2):
        publish(topic, cnx.producers[1], sequence_id)
    errors = [one.send_error.error for one in cnx.take() if one.HasField("send_error")]
    assert errors == [pb.PersistenceError] * 2
    topic.ledger.confirm(topic.ledger.last_confirmed)  # type: ignore[attr-defined]
    for sequence_id in range(2):
        publish(topic, cnx.producers[1], sequence_id)
    assert answered(cnx) == [DUPLICATE, DUPLICATE]
    assert topic.deduplication.judge("p1", 2) is Verdict.NEW
    assert topic.ledger.ledgers[0].entries == 2
    await settle()


@pytest.mark.parametrize(
    ("profile", "known", "verdict"),
    [("floodgate", 4, Verdict.NEW), ("pulsar", 5, Verdict.DUPLICATE)],
)
async def test_the_last_chunk_after_an_unload_is_new_except_in_profile_pulsar(
    profile: str, known: int, verdict: Verdict
) -> None:
    hand = TopicOnHand(ON, keys={"floodgateProfile": profile})
    topic, cnx = await producing(hand)
    publish(topic, cnx.producers[1], 4)
    chunk = entry_bytes(producer_name="p1", sequence_id=5, chunk_id=0, num_chunks_from_msg=2)
    topic.publish(cnx.producers[1], 5, 0, chunk, digest_of(parse_metadata(chunk)), whole=False)
    hand.store.close_ledger(topic.full_name)
    again = await hand.topic()
    assert again.deduplication.last_sequence_id("p1") == known
    assert again.deduplication.judge("p1", 5) is verdict
    await settle()


async def test_sequence_ids_are_signed_as_in_java() -> None:
    topic, cnx = await producing(TopicOnHand(ON))
    for sequence_id in (2**64 - 1, 0, 2**63, 2**63 - 1):
        publish(topic, cnx.producers[1], sequence_id)
    # As recorded: -1 is stored, and the highest id of the batch is reported as 0.
    assert [one == DUPLICATE for one in answered(cnx)] == [False, True, True, False]
    assert topic.deduplication.last_sequence_id("p1") == 2**63 - 1
    await settle()


async def test_a_forgotten_producer_with_a_message_in_flight_has_an_unknown_verdict() -> None:
    hand = TopicOnHand(ON, keys={"brokerDeduplicationMaxNumberOfProducers": "1"})
    dedup = (await hand.topic()).deduplication
    dedup.begun("a", 0)
    dedup.stored("a", 0, Position(1, 0))
    dedup.begun("a", 1)
    dedup.begun("b", 0)
    dedup.stored("b", 0, Position(1, 1))
    assert dedup.judge("a", 1) is Verdict.UNKNOWN


async def test_a_batch_of_unknown_status_is_refused_with_its_highest_sequence_id(
    monkeypatch,
) -> None:
    topic, cnx = await producing(TopicOnHand(ON))
    monkeypatch.setattr(topic.deduplication, "judge", lambda *_: Verdict.UNKNOWN)
    publish(topic, cnx.producers[1], 1, highest=3)
    (answer,) = cnx.take()
    assert answer.send_error.sequence_id == 3


async def test_a_message_in_flight_when_deduplication_is_disabled_makes_no_snapshot() -> None:
    hand = TopicOnHand(ON, keys={"brokerDeduplicationEntriesInterval": "1"})
    topic, cnx = await producing(hand, slow=True)
    for sequence_id in range(2):
        publish(topic, cnx.producers[1], sequence_id)
    hand.policies = DEFAULTS
    topic.policies_changed()
    topic.ledger.confirm(topic.ledger.last_confirmed)  # type: ignore[attr-defined]
    assert CURSOR not in topic.ledger.cursors
    await settle()


async def test_entries_are_not_dropped_before_a_snapshot_has_their_sequence_ids() -> None:
    topic, cnx = await producing(TopicOnHand(ON))
    publish(topic, cnx.producers[1], 0)
    topic.ledger.roll()
    topic.subscriptions.moved()
    assert topic.ledger.size_bytes
    topic.deduplication.save()
    topic.subscriptions.moved()
    assert not topic.ledger.size_bytes
    await settle()


@pytest.mark.parametrize("how", ["truncate", "no room"])
async def test_a_snapshot_is_taken_before_entries_are_dropped_by_force(how: str) -> None:
    hand = TopicOnHand(ON, store=MemoryMessageStore(StoreBounds(topic=2 * COST)))
    topic, cnx = await producing(hand)
    for sequence_id in range(2):
        publish(topic, cnx.producers[1], sequence_id)
    if how == "truncate":
        topic.truncate()
    else:
        publish(topic, cnx.producers[1], 2)
    assert topic.ledger.cursors[CURSOR].properties == {"p1": "1"}
    await settle()
