"""SUBSCRIBE, UNSUBSCRIBE and SEEK with a failing or slow store, as seen by a client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.consuming import IDS_A_STEP, IDS_A_TURN
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.consumer import Consumer
from broker.messages.subscriptions.subscription import INDIVIDUALLY
from tests.unit.broker.commands.test_producing import (
    LEDGER,
    NAME,
    Client,
    client,
    producing,
    send_frame,
    subscribe,
    topic,
)

if TYPE_CHECKING:
    from broker.messages.position import Position

Type = pb.BaseCommand
REASON = "the disk is gone"


UNSUBSCRIBE = pb.BaseCommand(
    type=Type.UNSUBSCRIBE, unsubscribe=pb.CommandUnsubscribe(consumer_id=1, request_id=8)
)
SEEK = pb.BaseCommand(
    type=Type.SEEK,
    seek=pb.CommandSeek(
        consumer_id=1, request_id=8, message_id=pb.MessageIdData(ledgerId=1, entryId=0)
    ),
)


async def test_a_subscription_that_cannot_be_stored_is_refused_and_counted() -> None:
    found = await producing()
    topic(found).ledger.close(REASON)
    (answer,) = await found.ask(subscribe(7))
    error = answer.error
    assert (error.request_id, error.error, error.message) == (7, pb.PersistenceError, REASON)
    assert found.cnx.parts.counters.errors == {"PersistenceError": 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", [UNSUBSCRIBE, SEEK])
async def test_unsubscribe_and_seek_are_refused_when_the_ledger_fails(
    command: pb.BaseCommand,
) -> None:
    found = await client()
    (answer,) = await found.ask(subscribe(7))
    assert answer.HasField("success")
    topic(found).ledger.close(REASON)
    *_, answer = await found.ask(command)
    error = answer.error
    assert (error.request_id, error.error, error.message) == (8, pb.PersistenceError, REASON)


async def test_an_ack_on_the_compaction_subscription_closes_the_connection() -> None:
    found = await client()
    await found.ask(subscribe(7, subscription=SUBSCRIPTION))
    (subscription,) = topic(found).subscriptions
    ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual)
    ack.message_id.add(ledgerId=1, entryId=0)
    await found.ask(pb.BaseCommand(type=Type.ACK, ack=ack))
    assert found.closed
    assert subscription.durable


async def test_get_last_message_id_of_an_unreadable_entry_is_a_metadata_error() -> None:
    found = await client()
    await found.ask(subscribe(7))
    topic(found).ledger.append(b"\0\0\0\1\xff", MessageDigest(1, 1, 0))
    asked = pb.CommandGetLastMessageId(consumer_id=1, request_id=9)
    command = pb.BaseCommand(type=Type.GET_LAST_MESSAGE_ID, getLastMessageId=asked)
    (answer,) = await found.ask(command)
    assert (answer.error.request_id, answer.error.error) == (9, pb.MetadataError)
    assert answer.error.message.startswith("Failed to get batch size for entry ")


async def test_a_consumer_resubscribing_during_its_seek_is_attached_after_the_answer_of_the_seek(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await client()
    await found.ask(subscribe(7))
    ledger, disk = topic(found).ledger, asyncio.Event()
    monkeypatch.setattr(ledger, "flushed", disk.wait)
    (closed,) = await found.ask(SEEK)
    assert closed.HasField("close_consumer")
    assert await found.ask(subscribe(7)) == []
    disk.set()
    answers = await found.ask()
    assert [answer.success.request_id for answer in answers] == [8, 7]


SEEK_TIME = pb.BaseCommand(
    type=Type.SEEK, seek=pb.CommandSeek(consumer_id=1, request_id=9, message_publish_time=5)
)


@pytest.mark.parametrize("gone", [True, False])
async def test_a_seek_by_time_does_not_restore_a_subscription_deleted_meanwhile(
    monkeypatch: pytest.MonkeyPatch, *, gone: bool
) -> None:
    found = await client()
    await found.ask(subscribe(7))
    ledger, may_go_on = topic(found).ledger, asyncio.Event()

    async def slow(_: int) -> Position:
        await may_go_on.wait()
        return EARLIEST

    monkeypatch.setattr(ledger, "published_at", slow)
    assert await found.ask(SEEK_TIME) == []
    if gone:
        (deleted,) = await found.ask(UNSUBSCRIBE)
        assert deleted.HasField("success")
    may_go_on.set()
    *_, answer = await found.ask()
    assert list(ledger.cursors) == ([] if gone else ["s"])
    assert answer.HasField("error") is gone
    if gone:
        assert (answer.error.request_id, answer.error.message) == (9, "Consumer not found")


LAST = pb.BaseCommand(
    type=Type.GET_LAST_MESSAGE_ID,
    getLastMessageId=pb.CommandGetLastMessageId(consumer_id=1, request_id=9),
)
SEEK_NOTHING = pb.BaseCommand(type=Type.SEEK, seek=pb.CommandSeek(consumer_id=1, request_id=8))
FLOW = pb.BaseCommand(type=Type.FLOW, flow=pb.CommandFlow(consumer_id=1, messagePermits=9))


def to_entry(entry: int) -> pb.BaseCommand:
    asked = pb.CommandSeek(consumer_id=1, request_id=20 + entry)
    asked.message_id.ledgerId, asked.message_id.entryId = LEDGER, entry
    return pb.BaseCommand(type=Type.SEEK, seek=asked)


async def stored(messages: int, *, durable: bool, **keys: str) -> Client:
    """Return a client whose consumer 1 has a topic of ``messages`` messages."""
    found = await producing(**keys)
    for number in range(messages):
        await found.ask(send_frame(number))
    await found.ask(subscribe(7, durable=durable))
    return found


@pytest.mark.parametrize("durable", [True, False])
async def test_a_consumer_closed_by_its_seek_may_seek_again_and_resumes_at_the_latest_seek(
    *, durable: bool
) -> None:
    found = await stored(4, durable=durable)
    answers = await found.ask(to_entry(1), LAST, SEEK_TIME, to_entry(2))
    assert answers[0].HasField("close_consumer")
    assert not any(one.HasField("error") for one in answers)
    assert not any(one.HasField("close_consumer") for one in answers[1:])
    answers = await found.ask(to_entry(3), subscribe(7, durable=durable))
    assert sorted(one.success.request_id for one in answers) == [7, 23]
    await found.ask(FLOW)
    assert only_consumer(found).messages_out == 1


@pytest.mark.parametrize("durable", [True, False])
async def test_a_second_seek_is_refused_in_profile_pulsar(*, durable: bool) -> None:
    found = await stored(4, durable=durable, floodgateProfile="pulsar")
    await found.ask(to_entry(1))
    (answer,) = await found.ask(to_entry(2))
    assert (answer.error.error, answer.error.message) == (pb.MetadataError, "Consumer not found")


@pytest.mark.parametrize("durable", [True, False])
async def test_a_second_seek_is_refused_when_another_client_subscribed_first(
    *, durable: bool
) -> None:
    found = await stored(4, durable=durable)
    await found.ask(to_entry(1))
    other = await client(found.cnx.parts)
    (answer,) = await other.ask(subscribe(7, durable=durable))
    assert answer.HasField("success")
    (answer,) = await found.ask(to_entry(2))
    assert answer.error.message == "Consumer not found"


async def revoke(found: Client) -> None:
    (use,) = [one for one in found.cnx.uses() if one.subscription == "s"]
    use.close()


async def unload(found: Client) -> None:
    await found.cnx.parts.loaded_topics.unload(NAME)


async def close(found: Client) -> None:
    asked = pb.CommandCloseConsumer(consumer_id=1, request_id=5)
    await found.ask(pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=asked))


@pytest.mark.parametrize("ends", [revoke, unload, close])
async def test_a_second_seek_is_refused_when_the_client_lost_or_closed_its_consumer_meanwhile(
    ends: Callable[[Client], Awaitable[None]],
) -> None:
    found = await stored(4, durable=True)
    await found.ask(to_entry(1))
    await ends(found)
    found.answers()
    (answer,) = await found.ask(to_entry(2))
    assert answer.error.message == "Consumer not found"


async def test_only_a_bounded_number_of_closed_consumers_may_seek_again(monkeypatch) -> None:
    monkeypatch.setattr("broker.commands.consuming.MOST_SOUGHT", 1)
    found = await stored(1, durable=True)
    await found.ask(SEEK)
    seek = pb.BaseCommand(type=Type.SEEK, seek=SEEK.seek)
    seek.seek.consumer_id = 2
    await found.ask(subscribe(7, 2, subscription="s2"))
    await found.ask(seek)
    (answer,) = await found.ask(SEEK)
    assert answer.error.message == "Consumer not found"
    (answer,) = await found.ask(seek)
    assert answer.HasField("success")


async def test_a_seek_without_message_id_and_time_is_refused_even_without_a_consumer() -> None:
    found = await client()
    (answer,) = await found.ask(SEEK_NOTHING)
    text = "Message id and message publish time were not present"
    assert (answer.error.error, answer.error.message) == (pb.MetadataError, text)


async def consuming(kind: pb.CommandSubscribe.SubType.ValueType, messages: int) -> Client:
    """Return a client whose consumer 1 has received messages."""
    found = await producing()
    flow = pb.CommandFlow(consumer_id=1, messagePermits=messages)
    for said in (subscribe(7, subType=kind), pb.BaseCommand(type=Type.FLOW, flow=flow)):
        await found.ask(said)
    for number in range(messages):
        await found.ask(send_frame(number))
    assert len(only_consumer(found).pending) == messages or kind not in INDIVIDUALLY
    return found


def only_consumer(of: Client) -> Consumer:
    (consumer,) = of.cnx.consumers.values()  # type: ignore[attr-defined]
    assert isinstance(consumer, Consumer)
    return consumer


def giving_back(entries: int) -> pb.BaseCommand:
    """Return a command that negatively acknowledges a number of entries, from the first."""
    ids = [pb.MessageIdData(ledgerId=LEDGER, entryId=entry) for entry in range(entries)]
    asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=ids)
    kind = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
    return pb.BaseCommand(type=kind, redeliverUnacknowledgedMessages=asked)


async def test_redelivery_of_many_message_ids_takes_steps_and_later_commands_wait() -> None:
    found = await consuming(pb.CommandSubscribe.Shared, 3)
    close = pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=pb.CommandCloseConsumer())
    close.close_consumer.consumer_id, close.close_consumer.request_id = 1, 9
    consumer, steps = only_consumer(found), []
    redeliver = consumer.subscription.redeliver

    def counted(consumer: Consumer, ids: Sequence[object], *rest: object, more: bool) -> None:
        steps.append((len(ids), more, found.cnx.unfinished))
        redeliver(consumer, ids, *rest, more=more)  # type: ignore[arg-type]

    consumer.subscription.redeliver = counted  # type: ignore[method-assign]
    answers = await found.ask(giving_back(IDS_A_TURN + 1), close)
    assert steps == [(IDS_A_STEP, True, True)] * 4 + [(1, False, True)]
    assert [one.type for one in answers][-1:] == [Type.SUCCESS]
    assert not found.cnx.unfinished


async def test_redelivery_to_an_exclusive_consumer_sends_nothing_without_permits() -> None:
    found = await consuming(pb.CommandSubscribe.Exclusive, 3)
    await found.ask(giving_back(IDS_A_TURN + 1))
    # Reading restarts once, and the consumer has no permits for redelivery
    assert only_consumer(found).messages_out == 3
