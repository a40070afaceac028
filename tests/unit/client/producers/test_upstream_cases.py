"""Upstream's tests of a producer's memory, by name.

The tests name our differences.
"""

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import (
    AlreadyClosed,
    InvalidMessage,
    MemoryBufferIsFullError,
    MessageTooBig,
    ProducerFenced,
    ProducerQueueIsFullError,
    Timeout,
    TopicTerminated,
)
from client.messages.enums import CompressionType
from client.messages.message_id import MessageId
from client.producers.producer import Producer
from client.producers.sending import send_queue
from client.producers.sending.entry_writer import EntryWriter
from tests.support.clocks.settle import settle, started
from tests.support.peers.scripted_broker import ScriptedBroker

KIB = 1024
CASES = {
    "MemoryLimitTest": ("testRejectMessages", "testRejectMessagesOnMultipleTopics"),
    "ProducerMemoryLimitTest": (
        "testProducerInvalidMessageMemoryRelease",
        "testProducerTimeoutMemoryRelease",
        "testProducerBatchSendTimeoutMemoryRelease",
        "testBatchMessageOOMMemoryRelease",
        "testProducerCloseMemoryRelease",
        "testProducerBlockReserveMemory",
        "testMultiPulsarClientProducerShareMemoryLimitController",
    ),
    "ProducerImplTest": (
        "testProcessOpSendMsgInTerminalStateReleasesMemoryOnce",
        "testFailPendingMessagesSyncRetry",
    ),
    "ProducerMemoryLeakTest": (
        "testSchemaFailureCallbackStopsRecovery",
        "testDeferredOversizedMessageClosesProducerInCallback",
        "testChunkedSendStopsAfterRejectedWrite",
        "testInterruptedChunkedSendReleasesUnbuiltChunks",
        "testSendQueueIsFull",
        "testSendMessageSizeExceeded",
        "testBatchedSendMessageSizeExceeded",
        "testSendAfterClosedProducer",
        "testBrokenSchema",
        "testInterceptorError",
        "testChunksEnqueueFailed",
        "testChunksBlockedByTheirOwnPlaces",
    ),
}


def test_every_upstream_case_is_named_in_a_docstring() -> None:
    found = set()
    for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(re.findall(r"Upstream: (\w+)\.(\w+)", ast.get_docstring(node) or ""))
    assert found == {(name, case) for name, cases in CASES.items() for case in cases}


async def filled(producer: Producer, count: int, size: int) -> list[asyncio.Future[MessageId]]:
    """Return the results of ``count`` messages without receipts."""
    return [producer.send_nowait(bytes(size)) for _ in range(count)]


async def test_messages_are_rejected_until_the_connection_recovers() -> None:
    """Upstream: MemoryLimitTest.testRejectMessages"""
    broker = ScriptedBroker(limit_bytes=100 * KIB)
    producer = await broker.producer(block_if_queue_full=False)
    broker.cnx.takes_no_more()
    pending = await filled(producer, 101, KIB)
    assert broker.memory.current_usage == 101 * KIB
    with pytest.raises(MemoryBufferIsFullError):
        await producer.send(bytes(KIB))
    broker.cnx.takes_more()
    broker.answers()
    await asyncio.gather(*pending)
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0
    producer.send_nowait(b"again")


async def test_producers_of_two_topics_share_the_memory_limit() -> None:
    """Upstream: MemoryLimitTest.testRejectMessagesOnMultipleTopics"""
    broker = ScriptedBroker(limit_bytes=100 * KIB)
    first, second = await broker.producer(), await broker.producer("persistent://a/b/c")
    await filled(first, 50, KIB)
    await filled(second, 51, KIB)
    for producer in (first, second):
        with pytest.raises(MemoryBufferIsFullError):
            producer.send_nowait(bytes(KIB))
    broker.answers()
    assert broker.memory.current_usage == 0
    for producer in (first, second):
        producer.send_nowait(bytes(KIB))


async def test_a_message_refused_for_its_size_holds_no_memory() -> None:
    """Upstream: ProducerMemoryLimitTest.testProducerInvalidMessageMemoryRelease

    The error is the official Python client's.
    """
    broker = ScriptedBroker(max_message_size=8)
    producer = await broker.producer(batching_enabled=True)
    result = producer.send_nowait(b"more than eight")
    broker.clock.advance(0.01)
    assert isinstance(result.exception(), MessageTooBig)
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize("batching", [False, True])
async def test_timed_out_messages_hold_no_memory(batching: bool) -> None:
    """Upstream: ProducerMemoryLimitTest.testProducerTimeoutMemoryRelease and
    Upstream: ProducerMemoryLimitTest.testProducerBatchSendTimeoutMemoryRelease
    """
    broker = ScriptedBroker()
    producer = await broker.producer(
        send_timeout_millis=5_000,
        batching_enabled=batching,
        batching_max_allowed_size_in_bytes=12,
    )
    broker.cnx.breaks()
    results = await filled(producer, 2, 5)
    broker.clock.advance(5.0)
    assert broker.memory.current_usage == 0
    assert [type(one.exception()) for one in results] == [Timeout, Timeout]


async def test_a_batch_that_cannot_be_built_holds_no_memory(monkeypatch) -> None:
    """Upstream: ProducerMemoryLimitTest.testBatchMessageOOMMemoryRelease"""

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError("no buffer")

    broker = ScriptedBroker()
    producer = await broker.producer(batching_enabled=True)
    results = await filled(producer, 2, 10)
    monkeypatch.setattr(EntryWriter, "batch", no_memory)
    broker.clock.advance(1.0)
    assert [type(one.exception()) for one in results] == [MemoryError, MemoryError]
    assert (broker.memory.current_usage, producer.statistics().pending_messages) == (0, 0)


async def test_a_closed_producer_holds_no_memory(broker, producer) -> None:
    """Upstream: ProducerMemoryLimitTest.testProducerCloseMemoryRelease"""
    broker.cnx.breaks()
    result = producer.send_nowait(b"pending")
    await producer.close()
    assert broker.memory.current_usage == 0
    assert isinstance(result.exception(), AlreadyClosed)


async def test_a_memory_limit_below_the_batch_size_does_not_block_forever() -> None:
    """Upstream: ProducerMemoryLimitTest.testProducerBlockReserveMemory"""
    broker = ScriptedBroker(limit_bytes=KIB)
    producer = await broker.producer(
        batching_enabled=True,
        batching_max_allowed_size_in_bytes=64 * KIB,
        compression_type=CompressionType.SNAPPY,
        block_if_queue_full=True,
    )
    sends = [await started(producer.send(bytes(KIB))) for _ in range(5)]
    while not all(one.done() for one in sends):
        broker.clock.advance(0.01)
        broker.answers()
        await settle()
    await producer.close()
    assert all(one.result() for one in sends)
    assert broker.memory.current_usage == 0


async def test_two_clients_share_a_memory_limit() -> None:
    """Upstream: ProducerMemoryLimitTest.testMultiPulsarClientProducerShareMemoryLimitController"""
    one, other = ScriptedBroker(limit_bytes=600), ScriptedBroker()
    other.memory = one.memory
    first, second = await one.producer(), await other.producer()
    await filled(first, 3, 100)
    await filled(second, 4, 100)
    assert one.memory.current_usage == 700
    for producer in (first, second):
        with pytest.raises(MemoryBufferIsFullError):
            producer.send_nowait(bytes(100))
    one.cnx.breaks()
    await first.close()
    assert one.memory.current_usage == 400
    await filled(second, 3, 100)
    assert one.memory.current_usage == 700
    other.cnx.breaks()
    await second.close()
    assert one.memory.current_usage == 0


@pytest.mark.parametrize("state", [TopicTerminated, ProducerFenced, AlreadyClosed])
async def test_memory_of_messages_ended_by_a_final_state_is_released_once(state) -> None:
    """Upstream: ProducerImplTest.testProcessOpSendMsgInTerminalStateReleasesMemoryOnce"""
    broker = ScriptedBroker()
    producer = await broker.producer()
    result = producer.send_nowait(bytes(128))
    other = broker.memory.reserve_nowait(1)
    if state is AlreadyClosed:
        broker.cnx.breaks()
        await producer.close()
    else:
        code = pb.TopicTerminatedError if state is TopicTerminated else pb.ProducerFenced
        broker.refuses(broker.sent[0].send, code)
    assert isinstance(result.exception(), state)
    assert broker.memory.current_usage == other.size
    with pytest.raises(state):
        producer.send_nowait(b"")
    await producer.close()
    assert broker.memory.current_usage == other.size


async def test_a_message_resent_from_a_failure_callback_is_the_only_pending_message(broker) -> None:
    """Upstream: ProducerImplTest.testFailPendingMessagesSyncRetry"""
    producer = await broker.producer(max_pending_messages=2, send_timeout_millis=1_000)
    again: list[asyncio.Future[MessageId]] = []
    first, _ = await filled(producer, 2, 10)
    first.add_done_callback(lambda _: again.append(producer.send_nowait(b"again")))
    broker.clock.advance(1.0)
    await settle()
    assert len(again) == producer.statistics().pending_messages == 1
    assert broker.memory.current_usage == len(b"again")


@pytest.mark.parametrize("following", [False, True])
async def test_a_producer_closed_after_an_encoding_failure_writes_no_more(following) -> None:
    """Upstream: ProducerMemoryLeakTest.testSchemaFailureCallbackStopsRecovery

    Here values are encoded before memory is reserved.
    """
    broker = ScriptedBroker()
    producer = await broker.producer(schema=Broken(), max_pending_messages=10)
    if following:
        producer.send_nowait("fits")
    with pytest.raises(InvalidMessage):
        await producer.send("broken")
    broker.cnx.breaks()
    await producer.close()
    assert broker.contents == [b"fits"] * following
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0


class Broken:
    """A schema that refuses ``broken``."""

    def encode(self, value: str) -> bytes:
        if value == "broken":
            raise InvalidMessage("it does not fit")
        return value.encode()

    def schema_info(self) -> None:
        return None


async def test_a_message_above_the_size_limit_of_consumers_is_refused_immediately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send_queue, "largest_message_bytes", lambda _: 10)
    broker = ScriptedBroker()
    producer = await broker.producer(batching_enabled=False, chunking_enabled=True)
    with pytest.raises(MessageTooBig, match="raise memory_limit_bytes of the clients"):
        await producer.send(bytes(11))
    assert broker.memory.current_usage == 0


async def test_a_producer_closed_from_an_oversize_callback_holds_no_memory() -> None:
    """Upstream: ProducerMemoryLeakTest.testDeferredOversizedMessageClosesProducerInCallback"""
    broker = ScriptedBroker(max_message_size=10)
    producer = await broker.producer(max_pending_messages=10)
    result = producer.send_nowait(bytes(11))
    closing: list[asyncio.Task[None]] = []
    result.add_done_callback(lambda _: closing.append(asyncio.create_task(producer.close())))
    await settle()
    assert isinstance(result.exception(), MessageTooBig)
    assert closing[0].done()
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("rejected", [0, 1, 2])
async def test_a_chunk_that_cannot_be_written_fails_its_message(
    block, rejected, monkeypatch
) -> None:
    """Upstream: ProducerMemoryLeakTest.testChunkedSendStopsAfterRejectedWrite

    Differs: upstream keeps the preceding chunks pending though their memory is free; here the
    chunks are dropped.
    """
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(
        chunking_enabled=True, max_pending_messages=10, block_if_queue_full=block
    )
    written = EntryWriter.next_chunk
    built = []

    def next_chunk(writer: EntryWriter, message: Any, chunks: Any) -> Any:
        built.append(chunks.sent)
        if chunks.sent == rejected:
            raise OSError("no such buffer")
        return written(writer, message, chunks)

    monkeypatch.setattr(EntryWriter, "next_chunk", next_chunk)
    with pytest.raises(OSError, match="no such buffer"):
        await producer.send(bytes(2_500))
    assert built == list(range(rejected + 1))
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0
    await producer.close()


async def test_a_send_cancelled_between_chunks_continues_until_its_producer_closes() -> None:
    """Upstream: ProducerMemoryLeakTest.testInterruptedChunkedSendReleasesUnbuiltChunks

    Differs: sent chunks are useless without the rest, so the rest is sent as well.
    """
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(chunking_enabled=True, max_pending_messages=1)
    send = await started(producer.send(bytes(2_500)))
    send.cancel()
    await settle()
    assert send.cancelled()
    assert producer.statistics().pending_messages == 1
    broker.answers(1)
    assert len(broker.sent) == 2
    broker.cnx.breaks()
    await producer.close()
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0


async def test_a_full_queue_refuses_sends_and_holds_no_memory_after_close(broker) -> None:
    """Upstream: ProducerMemoryLeakTest.testSendQueueIsFull"""
    producer = await broker.producer(max_pending_messages=1)
    producer.send_nowait(b"")
    for _ in range(99):
        with pytest.raises(ProducerQueueIsFullError):
            producer.send_nowait(b"x")
    assert producer.statistics().queue_full_total == 99
    broker.cnx.breaks()
    await producer.close()
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize(
    ("size", "limit", "compression"),
    [(1, 5, CompressionType.NONE), (1, 6, CompressionType.LZ4)],
)
async def test_a_message_above_the_size_limit_is_refused(size, limit, compression) -> None:
    """Upstream: ProducerMemoryLeakTest.testSendMessageSizeExceeded"""
    broker = ScriptedBroker(max_message_size=limit)
    producer = await broker.producer(compression_type=compression)
    with pytest.raises(MessageTooBig):
        await producer.send(bytes(range(limit + size)))
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize(("limit", "refused"), [(1, True), (3, True), (40, False)])
async def test_a_batch_above_the_size_limit_is_refused(limit: int, refused: bool) -> None:
    """Upstream: ProducerMemoryLeakTest.testBatchedSendMessageSizeExceeded

    The numbers are our batches'.
    """
    broker = ScriptedBroker(max_message_size=limit)
    producer = await broker.producer(batching_enabled=True)
    results = [producer.send_nowait(b"a"), producer.send_nowait(b"b")]
    broker.clock.advance(1.0)
    broker.answers()
    assert [isinstance(one.exception(), MessageTooBig) for one in results] == [refused, refused]
    assert broker.memory.current_usage == 0


async def test_a_closed_producer_refuses_sends(broker: ScriptedBroker, producer: Producer) -> None:
    """Upstream: ProducerMemoryLeakTest.testSendAfterClosedProducer"""
    await producer.close()
    with pytest.raises(AlreadyClosed):
        await producer.send(b"")
    assert broker.memory.current_usage == 0


async def test_a_value_that_cannot_be_encoded_does_not_affect_other_messages(broker) -> None:
    """Upstream: ProducerMemoryLeakTest.testBrokenSchema"""
    producer = await broker.producer(schema=Broken())
    first = producer.send_nowait("one")
    with pytest.raises(InvalidMessage):
        producer.send_nowait("broken")
    last = producer.send_nowait("two")
    broker.answers()
    assert first.result() < last.result()
    assert broker.memory.current_usage == 0


async def test_a_nowait_send_of_more_chunks_than_places_fails() -> None:
    """Upstream: ProducerMemoryLeakTest.testChunksEnqueueFailed"""
    broker = ScriptedBroker(max_message_size=1_000)
    producer = await broker.producer(chunking_enabled=True, max_pending_messages=2)
    result = producer.send_nowait(bytes(5_000))
    assert isinstance(result.exception(), ProducerQueueIsFullError)
    assert producer.statistics().pending_messages == 0
    assert broker.memory.current_usage == 0


async def test_chunks_beyond_the_pending_limit_are_sent_one_after_another() -> None:
    """Upstream: ProducerMemoryLeakTest.testChunksBlockedByTheirOwnPlaces (#17446)"""
    broker = ScriptedBroker(max_message_size=100)
    producer = await broker.producer(chunking_enabled=True, max_pending_messages=3)
    send = await started(producer.send(bytes(2_000)))
    while not send.done():
        assert producer.statistics().pending_messages <= 3
        broker.answers(1)
        await settle()
    sent = broker.sent
    assert b"".join(one.payload for one in sent) == bytes(2_000)
    assert {one.metadata.num_chunks_from_msg for one in sent} == {len(sent)}
    assert send.result().first_chunk is not None
    assert broker.memory.current_usage == 0


@pytest.mark.parametrize("method", ["before_send", "on_send_acknowledgement", "on_close"])
async def test_a_raising_interceptor_is_logged_and_fails_no_send(method: str, caplog) -> None:
    """Upstream: ProducerMemoryLeakTest.testInterceptorError"""
    broker = ScriptedBroker()
    producer = await broker.producer(interceptors=(Raising(method),))
    result = producer.send_nowait(b"x")
    broker.answers()
    await settle()
    await producer.close()
    assert result.exception() is None
    assert broker.memory.current_usage == 0
    assert "an interceptor failed" in caplog.text


class Raising:
    """An interceptor with a raising method."""

    def __init__(self, method: str) -> None:
        self._method = method

    def before_send(self, *_: object) -> None:
        self._raise("before_send")

    def on_send_acknowledgement(self, *_: object) -> None:
        self._raise("on_send_acknowledgement")

    def on_close(self) -> None:
        self._raise("on_close")

    def _raise(self, method: str) -> None:
        if self._method == method:
            raise ValueError("broken")
