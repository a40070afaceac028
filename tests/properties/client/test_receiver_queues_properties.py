"""Memory is always the sum of held bytes, and no consumer or producer starves."""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from client.memory.bytes_receiver_queue import BytesReceiverQueue
from client.memory.receiver_queues import (
    QueueOptions,
    ReceiverQueuePolicy,
    ReceiverQueues,
)
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.reservation import MemoryWaiter, Reservation
from tests.support.client_memory.scripted_consumer import ScriptedConsumer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many

LIMITS = st.sampled_from([1, 7, 1_000, 200_000, 600_000, 4_000_000])
SIZES = st.sampled_from([1, 10, 1_000, 100_000])
PICKS = st.integers(0, 1_000)
MOST_CONSUMERS = 8
SECONDS_TO_A_MESSAGE = 10.0


class Evenly(ScriptedConsumer):
    """A consumer of equal entries."""

    def __init__(self, size: int, messages: int) -> None:
        super().__init__()
        self.size, self.messages = size * messages, messages


class ClientMemoryHistory(RuleBasedStateMachine):
    """Two clients under one limit: arrivals, takes, sends, cancellations, closes in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.consumers: list[Evenly] = []
        self.sends: list[Reservation] = []
        self.waiters: list[MemoryWaiter] = []
        self.largest_message = 0
        self.largest_entries: dict[Evenly, int] = {}
        self.begin(1, 0.25)

    @initialize(limit=LIMITS, share=st.sampled_from([0.25, 0.25, 0.5, 0.0, 1.0]))
    def begin(self, limit: int, share: float) -> None:
        self.limit, self.share = limit, share
        self.memory = MemoryLimitController(limit, 100, self.clock, producer_share=share)
        self.clients = [ReceiverQueues(self.memory, self.clock) for _ in range(2)]

    # -- steps --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.consumers) < MOST_CONSUMERS)
    @rule(
        client=st.integers(0, 1),
        size=SIZES,
        messages=st.sampled_from([1, 1, 3]),
        batch=st.sampled_from([0, 0, 4]),
        number=st.integers(1, 3),
    )
    def subscribe(self, client: int, size: int, messages: int, batch: int, number: int) -> None:
        for _ in range(number):
            consumer = Evenly(size, messages)
            options = QueueOptions(
                ReceiverQueuePolicy.BYTES, max_size=20, batch_receive_messages=batch
            )
            consumer.queue = self.clients[client].opening(options)(consumer, 20)
            self.consumers.append(consumer)
            self.largest_entries[consumer] = 0
            consumer.reattach()

    def consumer(self, pick: int) -> Evenly:
        return self.consumers[pick % len(self.consumers)]

    @precondition(lambda self: self.consumers)
    @rule(pick=PICKS, entries=st.integers(1, 30))
    def publish(self, pick: int, entries: int) -> None:
        consumer = self.consumer(pick)
        consumer.publish(entries, consumer.size, consumer.messages)

    @rule(entries=st.integers(1, 30))
    def publish_to_all(self, entries: int) -> None:
        for consumer in self.consumers:
            consumer.publish(entries, consumer.size, consumer.messages)

    @rule()
    def deliver_to_all(self) -> None:
        for consumer in self.consumers:
            self.deliver(consumer)

    def deliver(self, consumer: Evenly) -> None:
        if consumer.permits > 0 and consumer.pending:
            self.largest_entries[consumer] = consumer.size
            consumer.deliver_all()

    @precondition(lambda self: self.consumers)
    @rule(pick=PICKS)
    def deliver_to_one(self, pick: int) -> None:
        self.deliver(self.consumer(pick))

    @precondition(lambda self: self.consumers)
    @rule(pick=PICKS, times=st.integers(1, 25))
    def receive(self, pick: int, times: int) -> None:
        self.ask([self.consumer(pick)] * times)

    @precondition(lambda self: self.consumers)
    @rule(pick=PICKS)
    def pause_and_resume(self, pick: int) -> None:
        queue = self.consumer(pick).queue
        queue.pause()
        queue.resume()

    @precondition(lambda self: self.consumers)
    @rule(pick=PICKS)
    def reconnect(self, pick: int) -> None:
        self.consumer(pick).reattach()

    @precondition(lambda self: len(self.consumers) > 1)
    @rule(pick=PICKS)
    def unsubscribe(self, pick: int) -> None:
        consumer = self.consumer(pick)
        self.consumers.remove(consumer)
        del self.largest_entries[consumer]
        consumer.close()
        self.turn()

    @rule(size=SIZES, timeout_seconds=st.sampled_from([None, 5.0]))
    def send(self, size: int, timeout_seconds: float | None) -> None:
        self.largest_message = max(self.largest_message, size)
        self.waiters.append(self.memory.request(size, timeout_seconds))

    @precondition(lambda self: self.waiters)
    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        self.memory.abandon(self.waiters.pop(pick % len(self.waiters)))

    @precondition(lambda self: self.sends)
    @rule(pick=PICKS)
    def receipt(self, pick: int) -> None:
        self.sends.pop(pick % len(self.sends)).release()

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.turn()

    def ask(self, consumers: list[Evenly]) -> None:
        """Receive on behalf of applications, and have their requests answered."""

        async def receive() -> None:
            for consumer in consumers:
                consumer.receive()

        self.loop.run_until_complete(receive())
        self.turn()

    def turn(self) -> None:
        """Let the questions to the brokers be asked and answered."""
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @rule(pick=PICKS, all_ask=st.booleans())
    def each_application_that_waits_gets_a_message(self, pick: int, *, all_ask: bool) -> None:
        """Send from brokers for ten seconds; only waiting applications take arrivals."""
        asking = self.consumers if all_ask else self.consumers[pick % 8 :: 2]
        before = {one: one.received for one in asking if one.pending or one.queued}
        for _ in range(int(SECONDS_TO_A_MESSAGE / 0.25)):
            self.ask([one for one, received in before.items() if one.received == received])
            for consumer in self.consumers:
                self.deliver(consumer)
            self.memory_is_in_order()
            self.clock.advance(0.25)
        self.ask([one for one, received in before.items() if one.received == received])
        for consumer, received in before.items():
            assert consumer.received > received, "an application waited for ten seconds"

    # -- rules --------------------------------------------------------------------------------

    @invariant()
    def memory_is_in_order(self) -> None:
        self.settle_sends()
        queued = sum(consumer.queued_bytes for consumer in self.consumers)
        sending = sum(reservation.size for reservation in self.sends)
        assert self.memory.prefetch.arrived_bytes == queued
        assert self.memory.current_usage == queued + sending
        bound = self.limit + self.largest_message + sum(self.largest_entries.values())
        assert self.memory.current_usage <= bound

    def settle_sends(self) -> None:
        self.sends += [one.result() for one in self.waiters if one.reservation is not None]
        self.waiters = [one for one in self.waiters if not one.done]

    @invariant()
    def nobody_waits_who_could_go_on(self) -> None:
        assert self.memory.statistics().waiters == len(self.waiters)
        sending = sum(reservation.size for reservation in self.sends)
        if self.waiters:
            prefetch = self.memory.prefetch
            assert self.memory.current_usage + prefetch.more_bytes > self.limit
            assert not self.share or sending > int(self.limit * self.share)

    @invariant()
    def what_is_promised_is_the_sum_of_what_each_was(self) -> None:
        turns = [
            one.queue._turn for one in self.consumers if isinstance(one.queue, BytesReceiverQueue)
        ]
        prefetch = self.memory.prefetch
        assert prefetch.entry_bytes == sum(turn.entry_bytes for turn in turns)
        assert prefetch.more_bytes == sum(turn.more_bytes for turn in turns)
        assert prefetch.waiting == sum(prefetch.stands_in_line(turn) for turn in turns)

    @invariant()
    def each_consumer_has_permits_or_messages_or_waits(self) -> None:
        prefetch = self.memory.prefetch
        for consumer in self.consumers:
            assert isinstance(consumer.queue, BytesReceiverQueue)
            in_line = prefetch.stands_in_line(consumer.queue._turn)
            assert consumer.permits > 0 or consumer.queued or in_line

    def teardown(self) -> None:
        """Check that nothing is left when all are closed."""
        try:
            for waiter in self.waiters:
                self.memory.abandon(waiter)
            for consumer in self.consumers:
                consumer.close()
            for reservation in self.sends:
                reservation.release()
            assert self.memory.current_usage == 0
            assert self.memory.statistics().reservations == 0
            prefetch = self.memory.prefetch
            assert prefetch.entry_bytes == prefetch.more_bytes == prefetch.arrived_bytes == 0
            assert prefetch.waiting == prefetch.turns == 0
            for client in self.clients:
                self.loop.run_until_complete(client.close())
            assert not asyncio.all_tasks(self.loop)
        finally:
            self.loop.close()


TestClientMemoryHistory = ClientMemoryHistory.TestCase
TestClientMemoryHistory.settings = settings(
    max_examples=many(100), stateful_step_count=40, deadline=None
)
