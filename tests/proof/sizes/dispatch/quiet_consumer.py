"""A consumer of this process whose client keeps nothing: only the broker's work is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import isawaitable

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST, Position
from broker.messages.subscriptions.consumer import Consumer, ConsumerOptions
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.topic import PersistentTopic
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.transport.turn_writer import TurnWriter
from server.tasks.cooperative import in_parts

ACKS_A_TURN = 250
"""The number that a broker takes in one step of a long ACK."""


class QuietConnection:
    """A connection that is always writable, and drops all frames."""

    client_version = "proof"
    peer = "127.0.0.1:1"

    def __init__(self) -> None:
        self.consumers: dict[int, Consumer] = {}
        self.turn_writer = TurnWriter(lambda *_: None)
        self.outbound = OutboundBuffer(WriteBufferMarks())

    def send(self, command: pb.BaseCommand) -> None:
        """Drop the frame."""

    send_with_turn = send

    async def answers_ping(self) -> bool:
        return True


class QuietConsumer:
    """A consumer of a subscription, and its client's requests.

    Attributes:
        consumer: The broker's consumer.
        subscription: Its subscription.
    """

    def __init__(
        self,
        subscription: Subscription,
        kind: pb.CommandSubscribe.SubType.ValueType,
        permits: int = 0,
        name: str = "c",
        cnx: QuietConnection | None = None,
    ) -> None:
        self.subscription = subscription
        cnx = cnx or QuietConnection()
        options = ConsumerOptions(len(cnx.consumers), name, kind)
        self.consumer = subscription.add_consumer(cnx, options)
        cnx.consumers[options.consumer_id] = self.consumer
        if permits:
            subscription.flow(self.consumer, permits)

    async def has(self, messages: int) -> None:
        """Wait until so many messages were sent to it."""
        await settled(lambda: self.consumer.messages_out >= messages)

    async def receive(self, messages: int) -> None:
        """Give permits, and wait until so many more messages were sent to it."""
        before = self.consumer.messages_out
        self.subscription.flow(self.consumer, messages)
        await self.has(before + messages)

    async def acknowledge(self, places: Places, ack_set: Sequence[int] = ()) -> None:
        """Acknowledge entries individually, some in each turn."""
        for some in places.in_parts(ACKS_A_TURN):
            await asyncio.sleep(0)
            self.subscription.acknowledge(self.consumer, message_ids(some, ack_set))
        await asyncio.sleep(0)

    async def give_back(self, places: Places, each: int) -> None:
        """Redeliver entries, so many in each command."""
        for some in places.in_parts(each):
            await asyncio.sleep(0)
            self.subscription.redeliver(self.consumer, message_ids(some), None)
        await asyncio.sleep(0)

    async def leave(self) -> None:
        """Disconnect, and wait for the broker."""
        await called(lambda: self.subscription.remove_consumer(self.consumer))


async def called(work: Callable[[], object]) -> None:
    """Call a function in a separate turn."""
    await asyncio.sleep(0)
    done = work()
    if isawaitable(done):
        await done
    await asyncio.sleep(0)


async def settled(condition: Callable[[], bool]) -> None:
    """Wait until the broker has finished some work, and its next turn has passed."""
    done = False
    while not done:
        done = condition()
        await asyncio.sleep(0)


def message_ids(
    places: Iterable[tuple[int, int]], ack_set: Sequence[int] = ()
) -> list[pb.MessageIdData]:
    return [pb.MessageIdData(ledgerId=one, entryId=at, ack_set=ack_set) for one, at in places]


class Places:
    """Entries of a topic by ledger and number, made on demand.

    A list of a million would be work for the garbage collector, whose time is measured, too.
    """

    def __init__(self, topic: PersistentTopic, numbers: range | None = None) -> None:
        self._topic = topic
        ledger = topic.ledger
        self._before = ledger.preceding(EARLIEST)
        count = ledger.count(self._before, ledger.last_confirmed)
        self._numbers = range(count) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Position]:
        at = self._topic.ledger.at
        return (at(self._before, number + 1) for number in self._numbers)

    def __getitem__(self, some: slice) -> Places:
        return Places(self._topic, self._numbers[some])

    def in_parts(self, most: int) -> Iterator[list[Position]]:
        for part in in_parts(self._numbers, most):
            yield list(Places(self._topic, part))
