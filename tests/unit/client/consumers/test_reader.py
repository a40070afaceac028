"""Readers go through a topic from a given position, and know whether more messages exist."""

import asyncio
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.options import ReaderOptions
from client.consumers.reader import Reader, open_reader
from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    ServerResponseError,
    Timeout,
    server_response_error,
)
from client.messages.chunked_message import ChunkedMessage
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingMessage
from tests.support.clocks.settle import settle, started
from tests.support.messages.entries import NOW, PRODUCER, compacted
from tests.support.peers.model_broker import LEDGER, TOPIC, ModelBroker
from tests.support.peers.model_consumers import after, kinds

Type = pb.BaseCommand


async def opened(
    broker: ModelBroker, start: MessageId = MessageId.earliest, **options: Any
) -> Reader:
    """Return a reader, after the first messages have arrived."""
    options = {"receiver_queue_policy": "fixed", **options}
    reader = await open_reader(broker.context, TOPIC, start, ReaderOptions(**options))
    await settle()
    return reader


async def rest(reader: Reader) -> list[bytes]:
    """Return the payloads of all remaining messages."""
    payloads = []
    while await reader.has_message_available():
        payloads.append((await reader.read_next(1_000)).data())
    return payloads


async def test_a_reader_has_its_own_non_durable_subscription(broker: ModelBroker) -> None:
    await opened(broker, reader_name="me", subscription_role_prefix="role")
    asked = broker.subscribed
    assert asked is not None
    assert asked.subscription.startswith("role-reader-")
    assert (asked.durable, asked.consumer_name) == (False, "me")
    assert asked.start_message_id.ledgerId == 2**64 - 1


@pytest.mark.parametrize(
    ("place", "inclusive", "expected"),
    [
        ((1, -1), False, [b"4", b"5"]),
        ((1, 2), False, [b"4", b"5"]),
        ((1, 1), False, [b"3", b"4", b"5"]),
        ((1, 1), True, [b"2", b"3", b"4", b"5"]),
        ((1, -1), True, [b"1", b"2", b"3", b"4", b"5"]),
    ],
)
async def test_a_reader_starts_behind_its_start_message_id_or_inclusively_at_its_message(
    broker, place, inclusive, expected
) -> None:
    for messages in (1, 3, 2):
        broker.publish(messages)
    start = MessageId(-1, LEDGER, place[0], place[1])
    reader = await opened(broker, start, start_message_id_inclusive=inclusive)
    assert await rest(reader) == expected
    assert broker.subscribed is not None
    assert broker.subscribed.start_message_id.entryId == 1


async def test_an_empty_topic_has_no_message_available() -> None:
    reader = await opened(ModelBroker())
    assert not await reader.has_message_available()


async def test_a_listener_receives_every_message_and_read_next_is_refused() -> None:
    got: list[bytes] = []
    broker = ModelBroker().publish(2)
    reader = await opened(broker, reader_listener=lambda _, message: got.append(message.data()))
    assert got == [b"0", b"1"]
    with pytest.raises(InvalidConfiguration, match="the listener"):
        await reader.read_next()
    await reader.close()


async def test_a_reader_resumes_behind_the_last_read_message_after_a_lost_connection() -> None:
    broker = ModelBroker()
    for _ in range(2):
        broker.publish(3)
    reader = await opened(broker)
    first = [(await reader.read_next()).data() for _ in range(2)]
    broker.breaks()
    await after(broker, 1)
    assert first + await rest(reader) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert broker.subscribed is not None
    assert broker.subscribed.start_message_id.batch_index == 1


async def test_a_reader_acknowledges_its_progress_cumulatively(broker: ModelBroker) -> None:
    broker.publish()
    broker.publish(2)
    reader = await opened(broker)
    await rest(reader)
    await after(broker, 0.1)
    assert broker.acks[0].ack_type == pb.CommandAck.Cumulative
    assert broker.left == []


async def test_closing_a_disconnected_reader_does_not_wait_for_a_connection(
    broker: ModelBroker,
) -> None:
    broker.publish()
    reader = await opened(broker)
    await reader.read_next()
    broker.breaks()
    closing = await started(reader.close())
    assert closing.done()


async def test_seek_repeats_the_messages_behind_its_position(broker: ModelBroker) -> None:
    broker.publish(entries=3)
    reader = await opened(broker)
    await rest(reader)
    seeking = await started(reader.seek(MessageId(-1, LEDGER, 0)))
    broker.clock.advance(0.1)
    await seeking
    await settle()
    assert await rest(reader) == [b"1", b"2"]


async def test_a_reader_from_latest_reads_only_later_messages(broker: ModelBroker) -> None:
    broker.publish()
    broker.entries[0].left = 0  # The subscription begins behind the entry.
    reader = await opened(broker, MessageId.latest)
    before = await reader.has_message_available()
    broker.publish()
    assert not before
    assert await rest(reader) == [b"1"]


async def test_a_reader_from_latest_inclusive_reads_the_last_message(broker: ModelBroker) -> None:
    for _ in range(2):
        broker.publish()
        broker.entries[-1].left = 0
    reader = await opened(broker, MessageId.latest, start_message_id_inclusive=True)
    asking = await started(reader.has_message_available())
    broker.clock.advance(0.1)
    assert await asking
    await settle()
    assert await rest(reader) == [b"1"]


async def test_partitions_are_queried_concurrently_and_any_available_message_suffices() -> None:
    broker = ModelBroker(partition_count=2, delivers=False).publish()
    reader = await opened(broker)
    broker.hold = asyncio.Event()
    asking = await started(reader.has_message_available())
    asked = kinds(broker).count(Type.GET_LAST_MESSAGE_ID)
    broker.hold.set()
    assert await asking
    # When one of them fails, or is away
    first = next(iter(reader._topics.topics.values()))
    first.link.ended = AlreadyClosed("closed")
    although_one_failed = await reader.has_message_available()
    first.link.ended = None
    first.link.attached.clear()
    although_one_is_away = await reader.has_message_available()
    assert (asked, although_one_failed, although_one_is_away) == (2, True, True)


async def test_the_lookup_of_the_last_message_and_its_seek_share_the_operation_timeout(
    broker: ModelBroker,
) -> None:
    broker.publish()
    broker.entries[-1].left = 0
    reader = await opened(broker, MessageId.latest, start_message_id_inclusive=True)
    hold = broker.hold = asyncio.Event()
    asking = await started(reader.has_message_available())
    broker.clock.advance(20)
    broker.hold = asyncio.Event()
    hold.set()
    await settle()
    broker.clock.advance(10)
    with pytest.raises(Timeout, match="was not moved to its last message"):
        await asking


async def test_a_partitioned_topic_is_read_only_from_earliest_or_latest() -> None:
    broker = ModelBroker(partition_count=2)
    with pytest.raises(InvalidConfiguration, match="has 2 partitions"):
        await opened(broker, MessageId(-1, LEDGER, 0))


async def test_read_next_ends_at_its_timeout_or_when_the_reader_closes(broker: ModelBroker) -> None:
    reader = await opened(broker)
    timed, reading = await started(reader.read_next(10)), await started(reader.read_next())
    broker.clock.advance(0.01)
    with pytest.raises(Timeout):
        await timed
    await reader.close()
    with pytest.raises(AlreadyClosed):
        await reading
    assert [message async for message in reader] == []
    assert broker.memory.current_usage == 0


async def test_compacted_or_broken_messages_are_not_reported_as_available(
    broker: ModelBroker,
) -> None:
    broker.store(compacted(3, {1, 2}), 3, is_batch=True)
    reader = await opened(broker)
    got = await rest(reader)
    broker.delivers = False
    broker.publish()
    broker.entries[-1].tail, broker.delivers = b"?", True
    broker.deliver()
    assert got == [b"0"]
    assert await rest(reader) == []


async def test_a_refused_seek_repeats_no_message(broker: ModelBroker) -> None:
    broker.publish(3)
    broker.publish()
    reader = await opened(broker)
    taken = [(await reader.read_next()).data() for _ in range(2)]
    broker.refusals = [server_response_error(pb.MetadataError, "no")]
    with pytest.raises(ServerResponseError):
        await reader.seek(MessageId.earliest)
    await settle()
    assert taken + await rest(reader) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("start", [MessageId.latest, MessageId.earliest])
async def test_unread_messages_are_redelivered_after_a_lost_connection(broker, start) -> None:
    reader = await opened(broker, start)
    broker.publish(entries=2)
    broker.breaks()
    await after(broker, 1)
    assert broker.subscribed is not None
    assert broker.subscribed.start_message_id.entryId == 0
    assert await rest(reader) == [b"0", b"1"]


async def test_a_seek_to_a_time_is_repeated_after_a_lost_connection(broker: ModelBroker) -> None:
    broker.publish()
    reader = await opened(broker)
    broker.delivers = False
    seeking = await started(reader.seek(1_000))
    broker.clock.advance(0.1)
    await seeking
    broker.commands.clear()
    broker.breaks()
    for _ in range(2):
        await after(broker, 1)
    assert kinds(broker) == [Type.SUBSCRIBE, Type.SEEK, Type.SUBSCRIBE, Type.FLOW]
    assert broker.commands[1].seek.message_publish_time == 1_000


async def test_a_repeated_seek_to_a_time_is_retried_until_accepted(broker: ModelBroker) -> None:
    reader = await opened(broker)
    seeking = await started(reader.seek(1_000))
    broker.clock.advance(0.1)
    await seeking
    broker.commands.clear()
    broker.refusals = [None, server_response_error(pb.MetadataError, "not now")]
    broker.breaks()
    for _ in range(3):
        await after(broker, 1)
    tried = [Type.SUBSCRIBE, Type.SEEK]
    expected = [*tried, Type.CLOSE_CONSUMER, *tried, Type.SUBSCRIBE, Type.FLOW]
    assert kinds(broker) == expected


async def test_an_expired_incomplete_chunked_message_is_no_longer_available(broker) -> None:
    large = ChunkedMessage(OutgoingMessage(bytes(1_000), 1), PRODUCER, NOW, 300)
    broker.store(large.entry(0))
    reader = await opened(broker)
    before = await reader.has_message_available()
    await after(broker, 61)
    assert (before, await reader.has_message_available()) == (True, False)
