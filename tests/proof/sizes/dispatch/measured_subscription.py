"""A subscription of a topic with many entries, and its measurements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.subscriptions.subscriptions import Subscriptions
from broker.messages.topic import PersistentTopic
from tests.proof.sizes.dispatch.quiet_consumer import (
    Places,
    QuietConnection,
    QuietConsumer,
    called,
    settled,
)
from tests.proof.sizes.measured_turns import MeasuredTurns

SubType = pb.CommandSubscribe.SubType


class MeasuredSubscription:
    """A subscription from the first entry of a new topic.

    Attributes:
        count: Entries of the topic.
        topic: The topic.
        subscription: The subscription.
        kind: The type of its consumers.
    """

    def __init__(
        self, turns: MeasuredTurns, topic: PersistentTopic, kind: SubType.ValueType, count: int
    ) -> None:
        self._turns = turns
        self.topic, self.kind, self.count = topic, kind, count
        subscriptions = topic.subscriptions
        assert isinstance(subscriptions, Subscriptions)
        self.subscription: Subscription = subscriptions.create("s", earliest=True)

    @classmethod
    async def made(
        cls,
        turns: MeasuredTurns,
        name: str,
        kind: SubType.ValueType,
        count: int = 0,
        messages: int = 1,
        **of_entries: Callable[[int], str] | Callable[[int], int],
    ) -> MeasuredSubscription:
        """Return a subscription of a new topic; the default count is the proof's size."""
        count = count or turns.sizes.entries
        own_name = f"{name}-{SubType.Name(kind)}"
        topic = await turns.topic(own_name, count, messages, **of_entries)  # type: ignore[arg-type]
        return cls(turns, topic, kind, count)

    @property
    def dispatcher(self) -> SharedDispatcher:
        """The dispatcher of Shared and Key_Shared."""
        assert isinstance(self.subscription.dispatcher, SharedDispatcher)
        return self.subscription.dispatcher

    @property
    def places(self) -> Places:
        return Places(self.topic)

    def consumer(
        self, permits: int = 0, name: str = "c", cnx: QuietConnection | None = None
    ) -> QuietConsumer:
        """Connect a consumer, on a new connection by default."""
        return QuietConsumer(self.subscription, self.kind, permits, name, cnx)

    async def full_consumer(self, name: str = "c") -> QuietConsumer:
        """Connect a consumer, and deliver all entries to it."""
        consumer = self.consumer(self.count, name)
        await consumer.has(self.count)
        return consumer

    async def measure(self, what: str, work: Awaitable[object]) -> None:
        """Measure some work, in a row with the consumers' type."""
        await self._turns.measure(f"{what}, {SubType.Name(self.kind)}", work)

    async def all_left(self) -> None:
        """Wait until redelivered or skipped entries have left their consumers."""
        await settled(lambda: not self.dispatcher._leaving)

    async def save(self) -> None:
        """Store the cursor as if it had changed."""
        self.subscription.cursor.changed = True
        await called(self.subscription.cursor.save)
        await self.topic.ledger.flushed()

    async def delete(self) -> None:
        await self._turns.broker.messaging.loaded_topics.delete(self.topic.name, force=True)
