"""Whatever happens to a producer, its memory is what it holds, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.exceptions import MemoryBufferIsFull, ProducerQueueIsFull, PulsarException
from client.messages.enums import BatchingType
from client.producers.entry_writer import EntryWriter
from tests.support.clocks.settle import settle
from tests.support.peers.scripted_broker import ScriptedBroker

if TYPE_CHECKING:
    from client.messages.message_id import MessageId
    from client.producers.producer import Producer

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
)


class Run:
    """One producer, what is done to it, and what must hold after each step."""

    def __init__(self, broker: ScriptedBroker, producer: Producer, places: int) -> None:
        self.broker = broker
        self.producer = producer
        self.places = places
        self.overhead = 0 if places else 1_024
        self.sends: list[tuple[bytes, asyncio.Future[MessageId]]] = []
        self.flushes: list[asyncio.Task[None]] = []
        self.others = []  # type: ignore[var-annotated]
        self.fails = 0

    def content(self, size: int) -> bytes:
        return b"%d." % len(self.sends) + bytes(size)

    def do(self, step: str, number: int) -> None:
        broker = self.broker
        if step == "send":
            content = self.content(number)
            task = asyncio.get_running_loop().create_task(
                self.producer.send(content, partition_key=str(number))
            )
            self.sends.append((content, task))
        elif step == "send_nowait":
            content = self.content(number)
            try:
                self.sends.append((content, self.producer.send_nowait(content)))
            except (ProducerQueueIsFull, MemoryBufferIsFull):
                pass
        elif step == "cancel":
            open_ones = [result for _, result in self.sends if not result.done()]
            if open_ones:
                open_ones[number % len(open_ones)].cancel()
        elif step == "answer":
            broker.answers(number)
        elif step == "advance":
            broker.clock.advance(float(number))
        elif step == "break":
            broker.cnx.breaks()
        elif step == "close_producer":
            broker.closes_producers()
        elif step in ("refuse", "retry") and broker.cnx.attached.producers:
            code = pb.NotAllowedError if step == "refuse" else pb.PersistenceError
            if (first := broker.unanswered) is not None:
                broker.refuses(first.send, code)
        elif step == "flush":
            self.flushes.append(asyncio.get_running_loop().create_task(self.producer.flush()))
        elif step == "full":
            broker.cnx.takes_no_more()
        elif step == "empty":
            broker.cnx.takes_more()
        elif step == "fail_write":
            self.fails += 1
        elif step == "other":
            self.others.append(broker.memory.force_reserve(2_000))
        elif step == "other_gone" and self.others:
            self.others.pop().release()

    def check(self, *, at_rest: bool = True) -> None:
        """The sum of live reservations is usage; who waits has a reason.

        What was granted in this very turn nobody has taken yet.
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
            # What waits for memory has its place, and no other has been let in before it.
            assert full or memory.statistics().waiters == 1 or granted

    def check_results(self) -> None:
        """Each id is that of the entry that has the content."""
        for content, result in self.sends:
            if result.cancelled() or result.exception() is not None:
                continue
            message_id = result.result()
            stored = self.broker.stored[message_id.entry_id()]
            if stored.send.is_chunk:
                assert message_id.first_chunk is None or message_id.first_chunk < message_id
                assert content.endswith(stored.payload)
            else:
                assert stored.contents[max(0, message_id.batch_index())] == content

    async def recover(self) -> None:
        """Let everything go well from now on: then everybody is answered."""
        self.fails = 0
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
    options: dict[str, object],
    steps: list[tuple[str, int]],
    closes: bool,
    patch: pytest.MonkeyPatch,
) -> None:
    broker = ScriptedBroker(limit_bytes=LIMIT, max_message_size=PART)
    producer = await broker.producer(**options)
    one = Run(broker, producer, int(str(options["max_pending_messages"])))
    written = EntryWriter.next_chunk

    def next_chunk(writer, message, chunks):  # type: ignore[no-untyped-def]
        if one.fails and chunks.sent:
            one.fails -= 1
            raise OSError("no room")
        return written(writer, message, chunks)

    patch.setattr(EntryWriter, "next_chunk", next_chunk)
    for step, number in steps:
        one.do(step, number)
        one.check(at_rest=False)
        await asyncio.sleep(0)
        one.check(at_rest=False)
        await settle()
        one.check()
    if not closes:
        await one.recover()
    closing = asyncio.get_running_loop().create_task(producer.close())
    for _ in range(4):
        await settle()
        broker.answers(2)
        broker.clock.advance(31.0)
    await settle()
    assert closing.done()
    while one.others:
        one.others.pop().release()
    assert all(result.done() for _, result in one.sends)
    assert all(flush.done() for flush in one.flushes)
    assert broker.memory.current_usage == 0
    assert broker.memory.statistics().waiters == broker.memory.statistics().reservations == 0
    assert producer.statistics().pending_messages == producer.statistics().waiting_sends == 0
    one.check_results()
    for _, result in one.sends:
        if not result.cancelled() and (error := result.exception()) is not None:
            assert isinstance(error, PulsarException | OSError), error


@settings(max_examples=100, deadline=None)
@given(options=OPTIONS, steps=st.lists(STEPS, max_size=40), closes=st.booleans())
def test_a_producer_holds_what_it_holds(
    options: dict[str, object], steps: list[tuple[str, int]], closes: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(run(options, steps, closes, patch))
