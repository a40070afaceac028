"""A producer attaches, loses the broker, reconnects, and resends everything in order."""

import asyncio
import threading
import zlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import (
    AlreadyClosed,
    BrokerPersistenceError,
    MemoryBufferIsFullError,
    NotAllowedError,
    ProducerBlockedQuotaExceededException,
    ProducerBusy,
    ProducerFenced,
    Timeout,
    TopicTerminated,
)
from client.messages.enums import CompressionType, ProducerAccessMode
from client.messages.message_id import MessageId
from client.producers.options import ProducerOptions
from client.producers.sending.entry_writer import EntryWriter
from client.producers.sending.pending_entries import PendingEntries, PendingEntry
from client.producers.sending.pending_message import PendingMessage
from client.producers.sending.send_queue import LARGE_PART_BYTES, MOST_AT_ONCE
from client.producers.topic_producer import TopicProducer
from tests.support.clocks.settle import settle, started
from tests.support.peers.scripted_broker import TOPIC, ScriptedBroker, refusal


async def test_the_producer_command_carries_the_options_of_the_producer(
    broker: ScriptedBroker,
) -> None:
    await broker.producer(
        producer_name="mine", properties={"a": "b"}, access_mode=ProducerAccessMode.Exclusive
    )
    (command,) = broker.producers
    assert (command.topic, command.producer_name) == (TOPIC, "mine")
    assert command.user_provided_producer_name
    assert command.producer_access_mode == pb.Exclusive
    assert [(one.key, one.value) for one in command.metadata] == [("a", "b")]
    assert not command.HasField("schema")


async def test_a_broker_assigned_name_is_sent_again_with_the_next_epoch() -> None:
    broker = ScriptedBroker(topic_epoch=5)
    producer = await broker.producer()
    assert not broker.producers[0].HasField("producer_name")
    broker.cnx.breaks()
    assert not producer.is_connected()
    await pass_time(broker, 1.0)
    assert producer.is_connected()
    again = broker.producers[1]
    assert (again.producer_name, again.epoch, again.topic_epoch) == ("given", 1, 5)
    assert not again.user_provided_producer_name
    assert producer.producer_name() == "given"


async def pass_time(broker: ScriptedBroker, seconds: float) -> None:
    await settle()
    broker.clock.advance(seconds)
    await settle()


async def test_messages_without_a_receipt_are_resent_in_order_after_a_reconnection(
    broker: ScriptedBroker,
) -> None:
    producer = await broker.producer()
    results = [producer.send_nowait(b"%d" % number) for number in range(4)]
    broker.answers(1)
    broker.cnx.breaks()
    results.append(producer.send_nowait(b"meanwhile"))
    await pass_time(broker, 1.0)
    assert broker.contents == [b"1", b"2", b"3", b"meanwhile"]
    assert [one.send.sequence_id for one in broker.sent] == [1, 2, 3, 4]
    broker.answers()
    assert [one.result().entry_id() for one in results] == [0, 1, 2, 3, 4]
    assert producer.last_sequence_id() == 4


async def test_a_producer_closed_by_the_broker_with_a_new_url_reconnects_immediately() -> None:
    broker = ScriptedBroker()
    producer = await broker.producer()
    producer.send_nowait(b"x")
    broker.closes_producers("pulsar://elsewhere:6650")
    await settle()
    assert broker.connected == 2
    assert broker.contents == [b"x", b"x"]


async def test_sequence_ids_continue_after_the_last_known_to_the_broker() -> None:
    broker = ScriptedBroker(last_sequence_id=41)
    producer = await broker.producer(producer_name="mine")
    assert producer.last_sequence_id() == 41
    producer.send_nowait(b"")
    broker.last_sequence_id = 7
    broker.cnx.breaks()
    await pass_time(broker, 1.0)
    assert broker.sent[0].send.sequence_id == 42


async def test_initial_and_explicit_sequence_ids_are_used() -> None:
    broker = ScriptedBroker(last_sequence_id=41)
    producer = await broker.producer(initial_sequence_id=99)
    producer.send_nowait(b"")
    producer.send_nowait(b"", sequence_id=500)
    assert [one.send.sequence_id for one in broker.sent] == [100, 500]
    broker.answers()
    assert producer.last_sequence_id() == 500


async def test_the_receipt_of_a_timed_out_message_is_ignored(broker: ScriptedBroker) -> None:
    producer = await broker.producer(send_timeout_millis=1_000)
    late = producer.send_nowait(b"late")
    broker.clock.advance(1.0)
    assert isinstance(late.exception(), Timeout)
    second = producer.send_nowait(b"second")
    broker.answers(1)
    assert not second.done()
    broker.answers(1)
    assert second.result().entry_id() == 1


async def test_a_receipt_out_of_order_closes_the_connection_and_resends(broker, producer) -> None:
    producer.send_nowait(b"0")
    producer.send_nowait(b"1")
    broker.receipt(broker.sent[1])
    assert broker.cnx.closed
    await pass_time(broker, 1.0)
    assert broker.contents == [b"0", b"1"]


async def test_a_message_refused_as_not_allowed_fails_alone(broker, producer) -> None:
    first, second = producer.send_nowait(b"0"), producer.send_nowait(b"1")
    broker.refuses(broker.sent[0].send, pb.NotAllowedError, "too large for the policy")
    broker.answers()
    assert isinstance(first.exception(), NotAllowedError)
    assert "too large for the policy" in str(first.exception())
    assert second.exception() is None


async def test_a_refused_chunked_message_fails_while_its_neighbours_are_still_pending() -> None:
    # The second of three is in parts
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(chunking_enabled=True)
    first = producer.send_nowait(b"0")
    refused, third = producer.send_nowait(bytes(2_500)), producer.send_nowait(b"2")
    broker.refuses(broker.sent[2].send, pb.NotAllowedError)
    assert isinstance(refused.exception(), NotAllowedError)
    assert producer.statistics().pending_messages == 2
    for sent in (broker.sent[0], broker.sent[-1]):
        broker.receipt(sent)
    assert (first.exception(), third.exception()) == (None, None)
    assert broker.memory.current_usage == 0


async def test_a_batch_refused_as_not_allowed_fails_completely(broker: ScriptedBroker) -> None:
    producer = await broker.producer(batching_enabled=True, batching_max_messages=2)
    results = [producer.send_nowait(b"0"), producer.send_nowait(b"1")]
    broker.refuses(broker.sent[0].send, pb.NotAllowedError)
    assert [type(one.exception()) for one in results] == [type(refusal(pb.NotAllowedError))] * 2
    assert broker.memory.current_usage == 0


async def test_a_message_refused_for_another_reason_is_resent(broker, producer) -> None:
    result = producer.send_nowait(b"x")
    broker.refuses(broker.sent[0].send, pb.PersistenceError)
    await pass_time(broker, 1.0)
    assert not isinstance(result.exception() if result.done() else None, BrokerPersistenceError)
    broker.answers()
    assert result.exception() is None
    assert len(broker.producers) == 2


@pytest.mark.parametrize(
    ("code", "error"),
    [(pb.TopicTerminatedError, TopicTerminated), (pb.ProducerFenced, ProducerFenced)],
)
async def test_a_final_refusal_on_reconnection_fails_pending_and_later_messages(
    code, error
) -> None:
    broker = ScriptedBroker(refusals=[None, refusal(code)])
    producer = await broker.producer()
    result = producer.send_nowait(b"x")
    broker.cnx.breaks()
    await pass_time(broker, 1.0)
    assert isinstance(result.exception(), error)
    with pytest.raises(error):
        await producer.send(b"y")
    assert broker.memory.current_usage == 0


async def test_a_producer_name_in_use_is_refused_immediately() -> None:
    broker = ScriptedBroker(refusals=[refusal(pb.ProducerBusy, "taken")])
    with pytest.raises(ProducerBusy, match="taken"):
        await broker.producer()
    assert not broker.cnx.attached.producers


async def test_an_exceeded_quota_fails_pending_messages_only() -> None:
    full = refusal(pb.ProducerBlockedQuotaExceededException)
    broker = ScriptedBroker(refusals=[None, full])
    producer = await broker.producer()
    result = producer.send_nowait(b"x")
    broker.cnx.breaks()
    await pass_time(broker, 1.0)
    assert isinstance(result.exception(), ProducerBlockedQuotaExceededException)
    await pass_time(broker, 60.0)
    producer.send_nowait(b"y")
    assert broker.contents == [b"y"]


class Forgetting(dict[int, object]):
    """A dict that stores no item."""

    def __setitem__(self, key: int, value: object) -> None:
        """No-op."""


async def test_exclusive_access_is_awaited_without_a_timeout() -> None:
    broker = ScriptedBroker(is_ready=False)
    opening = await started(broker.producer(access_mode=ProducerAccessMode.WaitForExclusive))
    broker.clock.advance(1_000.0)
    await settle()
    assert not opening.done()
    turn = broker.cnx.exclusive_turns[0]
    turn.set_result(broker.success(broker.producers[0]))
    assert (await opening).is_connected()


async def test_a_producer_closed_while_awaiting_exclusive_access_requests_access_again() -> None:
    broker = ScriptedBroker(is_ready=False)
    opening = await started(broker.producer(access_mode=ProducerAccessMode.WaitForExclusive))
    broker.is_ready = True
    broker.closes_producers()
    await pass_time(broker, 1.0)
    assert opening.done()
    assert opening.result().is_connected()
    assert len(broker.producers) == 2


async def test_a_connection_lost_together_with_the_queued_answer_is_retried(monkeypatch) -> None:
    # Given a not-ready answer arriving together with the end of the connection
    broker = ScriptedBroker(is_ready=False)
    monkeypatch.setattr(broker.cnx, "exclusive_turns", Forgetting())
    opening = await started(broker.producer(access_mode=ProducerAccessMode.WaitForExclusive))
    broker.is_ready = True
    await settle()
    broker.clock.advance(1.0)
    await settle()
    assert (await opening).is_connected()


async def test_a_cancelled_wait_for_exclusive_access_closes_the_producer_at_the_broker() -> None:
    broker = ScriptedBroker(is_ready=False)
    opening = await started(broker.producer(access_mode=ProducerAccessMode.WaitForExclusive))
    opening.cancel()
    await settle()
    assert broker.cnx.commands[-1].type == pb.BaseCommand.CLOSE_PRODUCER
    assert not broker.cnx.exclusive_turns
    assert not broker.cnx.attached.producers


async def test_closing_sends_open_batches_and_waits_for_receipts(broker: ScriptedBroker) -> None:
    producer = await broker.producer(batching_enabled=True)
    result = producer.send_nowait(b"last")
    closing = await started(producer.close())
    with pytest.raises(AlreadyClosed):
        producer.send_nowait(b"too late")
    broker.answers()
    await closing
    await producer.close()
    assert result.exception() is None
    closes = [one for one in broker.cnx.commands if one.type == pb.BaseCommand.CLOSE_PRODUCER]
    assert len(closes) == 1


async def test_closing_fails_waiting_sends_and_messages_without_a_receipt_in_time(broker) -> None:
    producer = await broker.producer(max_pending_messages=1)
    pending = producer.send_nowait(b"pending")
    waiting = await started(producer.send(b"waiting"))
    closing = await started(producer.close())
    assert isinstance(waiting.exception(), AlreadyClosed)
    broker.clock.advance(30.0)
    await closing
    assert isinstance(pending.exception(), AlreadyClosed | Timeout)
    assert broker.memory.current_usage == 0


def closes(broker: ScriptedBroker) -> int:
    """Return how often the broker was notified of the producer's close."""
    commands = broker.cnx.commands
    return sum(one.type == pb.BaseCommand.CLOSE_PRODUCER for one in commands)


async def test_closing_at_a_silent_broker_still_sends_close_producer(broker, producer) -> None:
    producer.send_nowait(b"x")
    closing = await started(producer.close())
    broker.clock.advance(30.0)
    await closing
    assert closes(broker) == 1
    assert not broker.cnx.attached.producers


async def test_a_cancelled_close_ends_immediately_and_closes_at_the_broker(broker) -> None:
    producer = await broker.producer()
    result = producer.send_nowait(b"x")
    closing = await started(producer.close())
    closing.cancel()
    await settle()
    assert closing.cancelled()
    assert isinstance(result.exception(), AlreadyClosed)
    assert closes(broker) == 1
    await producer.close()
    assert closes(broker) == 1


async def test_a_second_close_waits_for_the_first_and_loses_no_message(broker) -> None:
    context = broker.context()
    producer = await broker.producer()
    context.parts.add(producer)
    result = producer.send_nowait(b"x")
    first, second = await started(producer.close()), await started(producer.close())
    assert not first.done()
    assert not second.done()
    broker.answers()
    await asyncio.gather(first, second)
    assert result.exception() is None
    assert closes(broker) == 1


@pytest.mark.parametrize("code", [pb.TopicTerminatedError, pb.ProducerFenced])
async def test_a_final_refusal_closes_the_producer_at_the_broker_once(broker, code) -> None:
    producer = await broker.producer()
    producer.send_nowait(b"x")
    broker.refuses(broker.sent[0].send, code)
    assert closes(broker) == 1
    await producer.close()
    assert closes(broker) == 1


async def test_a_late_receipt_does_not_confirm_a_resent_chunk() -> None:
    # A message in three chunks, of which the second fails
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(chunking_enabled=True)
    result = producer.send_nowait(bytes(2_500))
    first, second, third = broker.sent
    broker.receipt(first)
    broker.refuses(second.send, pb.PersistenceError)
    goes_on = broker.holds_closes = asyncio.Event()
    await pass_time(broker, 1.0)
    broker.receipt(third)
    goes_on.set()
    await settle()
    assert len(broker.producers) == 2
    assert [one.metadata.chunk_id for one in broker.sent] == [0, 1, 2, 1, 2]
    broker.answers(1)
    assert not result.done()
    broker.answers()
    assert result.result().entry_id() == 3


async def test_frames_are_held_back_while_the_connection_is_not_writable(broker, producer) -> None:
    broker.cnx.takes_no_more()
    for number in range(3):
        producer.send_nowait(b"%d" % number)
    assert broker.contents == []
    broker.cnx.takes_more()
    assert broker.contents == [b"0", b"1", b"2"]


async def test_flush_waits_only_for_messages_sent_before(broker: ScriptedBroker) -> None:
    producer = await broker.producer(batching_enabled=True, batching_max_publish_delay_ms=60_000)
    producer.send_nowait(b"before")
    flushing = await started(producer.flush())
    assert broker.contents == [b"before"]
    producer.send_nowait(b"after")
    broker.answers(1)
    await settle()
    assert flushing.done()


async def test_flush_raises_the_error_of_a_failed_message_or_an_ended_producer(
    broker: ScriptedBroker,
) -> None:
    producer = await broker.producer(send_timeout_millis=1_000)
    producer.send_nowait(b"late")
    flushing = await started(producer.flush())
    broker.clock.advance(1.0)
    with pytest.raises(Timeout):
        await flushing
    await producer.flush()  # No message is in flight any more.
    await producer.close()
    with pytest.raises(AlreadyClosed):
        await producer.flush()


async def test_every_send_times_out_at_its_own_time(broker: ScriptedBroker) -> None:
    producer = await broker.producer(send_timeout_millis=1_000)
    first = producer.send_nowait(b"0")
    broker.clock.advance(0.6)
    second = producer.send_nowait(b"1")
    broker.clock.advance(0.4)
    assert isinstance(first.exception(), Timeout)
    assert not second.done()
    broker.clock.advance(0.6)
    assert isinstance(second.exception(), Timeout)
    assert producer.statistics().send_timeouts_total == 2


async def test_many_timed_out_messages_fail_in_several_turns() -> None:
    broker = ScriptedBroker(limit_bytes=1 << 30)
    producer = await broker.producer(max_pending_messages=0, send_timeout_millis=1_000)
    results = [producer.send_nowait(b"") for _ in range(MOST_AT_ONCE + 1)]
    between: list[bool] = []
    broker.clock.call_at(
        broker.clock.now() + 1.0, lambda: between.extend(one.done() for one in results[-2:])
    )
    broker.clock.advance(1.0)
    assert between == [True, False]
    assert results[-1].done()


async def test_many_messages_of_an_ended_producer_fail_in_several_turns() -> None:
    broker = ScriptedBroker(limit_bytes=1 << 30)
    producer = await broker.producer(max_pending_messages=0)
    results = [producer.send_nowait(b"") for _ in range(MOST_AT_ONCE + 1)]
    broker.refuses(broker.sent[0].send, pb.TopicTerminatedError)
    assert [one.done() for one in results[-2:]] == [True, False]
    await settle()
    assert isinstance(results[-1].exception(), TopicTerminated)
    assert broker.memory.current_usage == 0


async def test_closing_returns_after_very_many_messages_have_failed() -> None:
    broker = ScriptedBroker(limit_bytes=1 << 30, holds=asyncio.Event())
    producer, opening = broker.opening(max_pending_messages=0)
    await settle()
    results = [producer.send_nowait(b"") for _ in range(MOST_AT_ONCE + 1)]
    opening.cancel()
    await producer.close()
    assert all(one.done() for one in results)


async def test_a_send_waiting_for_a_place_has_the_same_send_timeout(broker: ScriptedBroker) -> None:
    producer = await broker.producer(max_pending_messages=1, send_timeout_millis=1_000)
    producer.send_nowait(b"0")
    broker.clock.advance(0.9)
    waiting = await started(producer.send(b"1"))
    broker.clock.advance(0.9)
    await settle()
    assert not waiting.done()
    assert producer.statistics().pending_messages == 1
    broker.clock.advance(0.1)
    with pytest.raises(Timeout):
        await waiting


async def test_a_send_cancelled_while_waiting_holds_no_memory() -> None:
    broker = ScriptedBroker(limit_bytes=10)
    producer = await broker.producer()
    held = broker.memory.reserve_nowait(11)
    waiting = await started(producer.send(b"0"))
    behind = await started(producer.send(b"1"))
    assert producer.statistics().waiting_sends == 2
    waiting.cancel()
    await settle()
    held.release()
    await settle()
    assert broker.contents == [b"1"]
    assert broker.memory.current_usage == 1
    assert not behind.done()


async def test_a_send_cancelled_in_flight_holds_memory_until_its_receipt(broker, producer) -> None:
    send = await started(producer.send(b"x"))
    send.cancel()
    await settle()
    assert broker.memory.current_usage == 1
    broker.answers()
    assert broker.memory.current_usage == 0


async def test_memory_is_released_before_the_send_completes() -> None:
    broker = ScriptedBroker(limit_bytes=10)
    producer = await broker.producer()
    usages = []
    result = producer.send_nowait(bytes(11))
    result.add_done_callback(lambda _: usages.append(broker.memory.current_usage))
    broker.answers()
    await settle()
    assert usages == [0]


async def test_without_a_place_limit_memory_bounds_even_empty_messages() -> None:
    broker = ScriptedBroker(limit_bytes=10_240)
    producer = await broker.producer(max_pending_messages=0)
    sent = 0
    with suppress(MemoryBufferIsFullError):
        while sent < 100:
            producer.send_nowait(b"")
            sent += 1
    assert sent == 11


async def test_message_metadata_carries_every_argument_of_send() -> None:
    broker = ScriptedBroker(schema_version=b"\1")
    producer = await broker.producer(compression_type=CompressionType.ZLib)
    producer.send_nowait(
        b"x" * 100,
        {"a": "b"},
        partition_key="key",
        ordering_key="order",
        event_timestamp=5,
        deliver_after=timedelta(seconds=2),
        replication_clusters=["here"],
    )
    producer.send_nowait(None, disable_replication=True)
    one, other = (sent.metadata for sent in broker.sent)
    assert (one.partition_key, one.ordering_key, one.event_time) == ("key", b"order", 5)
    assert one.deliver_at_time == broker.clock.wall_ms() + 2_000
    assert list(one.replicate_to) == ["here"]
    assert (one.compression, one.uncompressed_size) == (pb.ZLIB, 100)
    assert (one.producer_name, one.schema_version) == ("given", b"\1")
    assert one.publish_time == broker.clock.wall_ms()
    assert other.null_value
    assert list(other.replicate_to) == ["__local__"]


async def test_a_delayed_message_is_not_batched(broker: ScriptedBroker) -> None:
    producer = await broker.producer(batching_enabled=True)
    for content, later in ((b"0", None), (b"1", 99), (b"2", None)):
        producer.send_nowait(content, deliver_at=later)
    broker.clock.advance(0.01)
    assert [one.contents for one in broker.sent] == [[b"0"], [b"1"], [b"2"]]


async def test_a_producer_whose_opening_was_cancelled_is_not_attached() -> None:
    broker = ScriptedBroker(holds=asyncio.Event())
    context = broker.context()
    producer = TopicProducer(context, TOPIC, ProducerOptions())
    opening = await started(producer.open(context.due()))
    opening.cancel()
    await settle()
    await producer.close()
    assert opening.cancelled()
    assert not broker.cnx.attached.producers


async def test_large_chunks_are_encoded_over_several_turns_and_not_overtaken() -> None:
    broker = ScriptedBroker(max_message_size=2 * LARGE_PART_BYTES, limit_bytes=1 << 30)
    producer = await broker.producer(chunking_enabled=True)
    large = producer.send_nowait(bytes(5 * LARGE_PART_BYTES))
    small = await started(producer.send(b"small"))
    assert [one.metadata.chunk_id for one in broker.sent] == [0, 1, 2, 0]
    broker.answers()
    assert large.result() < await small
    # The next message is not cut yet
    producer.send_nowait(bytes(5 * LARGE_PART_BYTES))
    assert len(broker.sent) == 5
    await settle()
    assert len(broker.sent) == 7


async def test_a_refused_unchunked_message_causes_no_scan_of_pending_entries(monkeypatch) -> None:
    monkeypatch.setattr(
        PendingEntries, "drop_parts_of", lambda *_: pytest.fail("looks at all entries")
    )
    broker = ScriptedBroker()
    producer = await broker.producer(chunking_enabled=True)
    result = producer.send_nowait(b"x")
    broker.refuses(broker.sent[0].send, pb.NotAllowedError)
    assert isinstance(result.exception(), NotAllowedError)


async def test_each_chunk_counts_the_properties_towards_memory() -> None:
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(chunking_enabled=True)
    producer.send_nowait(bytes(1_001), {"a": "x" * 800})
    first, *others = broker.sent
    assert len(others) > 5
    heads = (len(others) + 1) * first.metadata.ByteSize()
    assert broker.memory.current_usage > 1_001 + heads
    broker.answers(len(others))
    assert broker.memory.current_usage < 1_001 + 3 * first.metadata.ByteSize()
    broker.answers()
    assert broker.memory.current_usage == 0


async def test_a_message_id_names_its_partition(broker: ScriptedBroker) -> None:
    producer = await broker.producer(topic=f"{TOPIC}-partition-3")
    result = producer.send_nowait(b"x")
    broker.answers()
    assert result.result() == MessageId(3, 7, 0)
    assert result.result().topic_name == f"{TOPIC}-partition-3"


@pytest.mark.parametrize("choice", [{}, {"chunking_enabled": True}, {"batching_enabled": True}])
async def test_a_large_message_is_compressed_in_a_thread_and_not_overtaken(
    broker: ScriptedBroker, choice: dict[str, Any]
) -> None:
    producer = await broker.producer(compression_type=CompressionType.ZLib, **choice)
    large = await started(producer.send(bytes(200_000)))
    small = await started(producer.send(b"small"))
    await asyncio.get_running_loop().shutdown_default_executor()
    await settle()
    broker.clock.advance(0.01)
    broker.answers()
    assert (await large).entry_id() == 0
    assert (await small).entry_id() == 1
    assert broker.sent[0].metadata.uncompressed_size == 200_000
    assert zlib.decompress(broker.sent[0].payload) == bytes(200_000)
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize("waits", [False, True])
async def test_a_message_being_compressed_at_close_is_sent_unless_the_close_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    goes_on = threading.Event()
    single = EntryWriter.single

    def slow(writer: EntryWriter, message: PendingMessage) -> PendingEntry:
        goes_on.wait()
        return single(writer, message)

    monkeypatch.setattr(EntryWriter, "single", slow)
    broker = ScriptedBroker()
    producer = await broker.producer(compression_type=CompressionType.ZLib)
    large = await started(producer.send(bytes(200_000)))
    closing = await started(producer.close())
    if not waits:
        closing.cancel()
        await settle()
    goes_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    await settle()
    broker.answers()
    await asyncio.wait([closing, large])
    assert isinstance(large.exception(), AlreadyClosed) is not waits
    assert len(broker.sent) == waits
    assert broker.memory.current_usage == 0
    assert producer.statistics().pending_messages == 0


async def test_a_failed_compression_fails_its_message_and_releases_memory(monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(EntryWriter, "single", broken)
    broker = ScriptedBroker()
    producer = await broker.producer(compression_type=CompressionType.ZLib)
    with pytest.raises(MemoryError):
        await producer.send(bytes(200_000))
    assert broker.memory.current_usage == 0


async def test_the_repr_of_a_producer_shows_its_name_and_topic() -> None:
    producer = await ScriptedBroker().producer()
    assert repr(producer) == f"<Producer {producer.producer_name()} of {producer.topic()}>"


async def test_the_number_of_unsent_messages_is_logged_at_close(broker, producer, caplog) -> None:
    broker.cnx.breaks()
    for _ in range(3):
        producer.send_nowait(b"x")
    await producer.close()
    assert caplog.messages == [
        f"{producer.topic()}: the producer was closed with 3 messages unsent"
    ]
