"""A producer's memory is always its held messages', and no caller waits for ever."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.exceptions import (
    AlreadyClosed,
    MemoryBufferIsFull,
    ProducerQueueIsFull,
    PulsarException,
)
from client.messages.chunked_message import Chunks
from client.messages.enums import BatchingType
from client.messages.message_id import MessageId
from client.producers.producer import Producer
from client.producers.sending.entry_writer import EntryWriter
from client.producers.sending.pending_entries import PendingEntry
from client.producers.sending.pending_message import PendingMessage
from limiter.client_memory.reservation import Reservation
from tests.support.clocks.settle import settle
from tests.support.examples import many
from tests.support.peers.scripted_broker import ScriptedBroker

LIMIT, PART, PLACES = 4_000, 1_000, 6
SIZES = st.sampled_from([0, 1, 100, 900, 1_500, 3_500])
STEPS = st.one_of(
    st.tuples(st.just("send"), SIZES),
    st.tuples(st.just("send_nowait"), SIZES),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("answer"), st.integers(1, 3)),
    st.tuples(st.just("advance"), st.sampled_from([0.01, 0.2, 3.0])),
    st.tuples(st.sampled_from(["break", "close_producer", "refuse", "retry", "flush"]), st.just(0)),
    st.tuples(st.sampled_from(["full", "empty", "fail_write", "other", "other_gone"]), st.just(0)),
    st.tuples(st.sampled_from(["opens", "close", "cancel_close", "cancel_flush"]), st.just(0)),
)
OPTIONS = st.fixed_dictionaries(
    {
        "batching_enabled": st.booleans(),
        "batching_type": st.sampled_from(list(BatchingType)),
        "batching_max_messages": st.sampled_from([2, 100]),
        "chunking_enabled": st.booleans(),
        "max_pending_messages": st.sampled_from([0, 1, PLACES]),
        "send_timeout_millis": st.sampled_from([0, 5_000]),
    }
).filter(lambda options: not (options["batching_enabled"] and options["chunking_enabled"]))


class Run:
    """A producer, its steps, and the checks after each."""

    def __init__(
        self, broker: ScriptedBroker, producer: Producer, places: int, *, by_key: bool
    ) -> None:
        self.broker = broker
        self.producer = producer
        self.places = places
        self.by_key = by_key
        self.sends: list[tuple[bytes, asyncio.Future[MessageId]]] = []
        self.flushes: list[asyncio.Task[None]] = []
        self.closing: asyncio.Task[None] | None = None
        self.others: list[Reservation] = []
        self.fails = 0

    def content(self, size: int) -> bytes:
        return b"%d." % len(self.sends) + bytes(size)

    def do(self, step: str, number: float) -> None:
        """Take a step on the producer; unlisted steps are the broker's own."""
        broker = self.broker
        plain: dict[str, Callable[[], object]] = {
            "answer": lambda: broker.answers(int(number)),
            "advance": lambda: broker.clock.advance(number),
            "break": broker.cnx.breaks,
            "close_producer": broker.closes_producers,
            "full": broker.cnx.takes_no_more,
            "empty": broker.cnx.takes_more,
            "opens": broker.opens,
            "other": lambda: self.others.append(broker.memory.force_reserve(2_000)),
            "refuse": lambda: self.refused(pb.NotAllowedError),
            "retry": lambda: self.refused(pb.PersistenceError),
        }
        own = getattr(self, step, None)
        if own is not None:
            own(int(number))
        else:
            plain[step]()

    def send(self, size: int) -> None:
        content = self.content(size)
        send = self.producer.send(content, partition_key=str(size))
        self.sends.append((content, asyncio.get_running_loop().create_task(send)))

    def send_nowait(self, size: int) -> None:
        content = self.content(size)
        with suppress(ProducerQueueIsFull, MemoryBufferIsFull, AlreadyClosed):
            sent = self.producer.send_nowait(content, partition_key=str(size))
            self.sends.append((content, sent))

    def cancel(self, number: int) -> None:
        if unanswered := [result for _, result in self.sends if not result.done()]:
            unanswered[number % len(unanswered)].cancel()

    def flush(self, _: int) -> None:
        self.flushes.append(asyncio.get_running_loop().create_task(self.producer.flush()))

    def cancel_flush(self, _: int) -> None:
        if self.flushes:
            self.flushes[-1].cancel()

    def close(self, _: int) -> None:
        if self.closing is None:
            self.closing = asyncio.get_running_loop().create_task(self.producer.close())

    def cancel_close(self, _: int) -> None:
        if self.closing is not None:
            self.closing.cancel()

    def fail_write(self, _: int) -> None:
        self.fails += 1

    def other_gone(self, _: int) -> None:
        if self.others:
            self.others.pop().release()

    def refused(self, code: pb.ServerError.ValueType) -> None:
        first = self.broker.unanswered
        if first is not None and self.broker.cnx.attached.producers:
            self.broker.refuses(first.send, code)

    def check(self, *, at_rest: bool = True) -> None:
        """Check that live reservations sum up to usage and each waiter has a reason.

        Grants of this very turn are not yet taken.
        """
        figures, memory = self.producer.statistics(), self.broker.memory
        others = sum(one.size for one in self.others)
        granted = memory.current_usage - others - figures.pending_bytes
        assert granted == 0 or (granted > 0 and figures.waiting_sends and not at_rest)
        assert figures.pending_messages >= 0
        assert not self.places or figures.pending_messages <= self.places
        assert memory.statistics().waiters <= 1
        if figures.waiting_sends:
            full = bool(self.places) and figures.pending_messages >= self.places
            # Waiters for memory keep their order.
            assert full or memory.statistics().waiters == 1 or granted

    def check_end(self) -> None:
        """Check that no caller waits and no memory is held."""
        assert all(result.done() for _, result in self.sends)
        assert all(flush.done() for flush in self.flushes)
        for flush in self.flushes:
            error = None if flush.cancelled() else flush.exception()
            assert error is None or isinstance(error, PulsarException | OSError), error
        memory, figures = self.broker.memory.statistics(), self.producer.statistics()
        assert memory.usage_bytes == memory.waiters == memory.reservations == 0
        assert figures.pending_messages == figures.waiting_sends == 0
        for _, result in self.sends:
            if not result.cancelled() and (error := result.exception()) is not None:
                assert isinstance(error, PulsarException | OSError), error

    def check_results(self) -> None:
        """Check that each id is its content's entry, and that ids rise, at least per key."""
        last: dict[bytes, tuple[int, int]] = {}
        for content, result in self.sends:
            if result.cancelled() or result.exception() is not None:
                continue
            message_id = result.result()
            place = message_id.entry_id(), message_id.batch_index()
            key = content.partition(b".")[2] if self.by_key else b""
            assert last.get(key, (-1, -1)) < place
            last[key] = place
            stored = self.broker.stored[message_id.entry_id()]
            if stored.send.is_chunk:
                assert message_id.first_chunk is None or message_id.first_chunk < message_id
                assert content.endswith(stored.payload)
            else:
                assert stored.contents[max(0, message_id.batch_index())] == content

    async def recover(self) -> None:
        """Remove all faults: then every call is answered."""
        self.fails = 0
        self.broker.opens()
        while self.others:
            self.others.pop().release()
        for _ in range(400):
            if all(one.done() for _, one in self.sends) and all(one.done() for one in self.flushes):
                break
            if not self.broker.cnx.closed:
                self.broker.cnx.takes_more()
            self.broker.clock.advance(0.2)
            await settle()
            self.broker.answers()
            await settle()
            self.check()
        assert all(result.done() for _, result in self.sends)
        assert all(one.done() for one in self.flushes)


async def run(
    options: dict[str, Any],
    steps: list[tuple[str, float]],
    *,
    closes: bool,
    early: bool,
    patch: pytest.MonkeyPatch,
) -> None:
    """Take the steps; then either recover, or close the producer immediately."""
    broker = ScriptedBroker(limit_bytes=LIMIT, max_message_size=PART)
    broker.holds = asyncio.Event() if early else None
    producer, opening = broker.opening(**options)
    if not early:
        await opening
    by_key = options["batching_type"] is BatchingType.KeyBased
    one = Run(broker, producer, options["max_pending_messages"], by_key=by_key)
    patch.setattr(EntryWriter, "next_chunk", failing(EntryWriter.next_chunk, one))
    for step, number in steps:
        one.do(step, number)
        one.check(at_rest=False)
        await asyncio.sleep(0)
        one.check(at_rest=False)
        await settle()
        one.check()
    if not closes:
        await one.recover()
    closing = asyncio.get_running_loop().create_task(one.producer.close())
    for _ in range(4):
        await settle()
        broker.answers(2)
        broker.clock.advance(31.0)
    await settle()
    assert closing.done()
    opening.cancel()
    await asyncio.wait([opening])
    while one.others:
        one.others.pop().release()
    one.check_end()
    one.check_results()


def failing(written: Callable[..., PendingEntry], one: Run) -> Callable[..., PendingEntry]:
    """Return a chunk writer that fails as often as the run says, but never at the first chunk."""

    def next_chunk(writer: EntryWriter, message: PendingMessage, chunks: Chunks) -> PendingEntry:
        if one.fails and chunks.sent:
            one.fails -= 1
            raise OSError("no room")
        return written(writer, message, chunks)

    return next_chunk


@settings(max_examples=many(100), deadline=None)
@given(
    options=OPTIONS,
    steps=st.lists(STEPS, max_size=40),
    closes=st.booleans(),
    early=st.booleans(),
)
def test_the_memory_of_a_producer_equals_its_pending_messages(
    options, steps, closes, early
) -> None:
    """``early``: messages precede the first attach, if any."""
    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(run(options, steps, closes=closes, early=early, patch=patch))
