"""A subscription of a topic of very many entries, and what is measured of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import proto.PulsarApi_pb2 as pb
from broker.messages.topic import PersistentTopic
from broker.subscriptions.dispatchers.shared import SharedDispatcher
from broker.subscriptions.subscription import Subscription
from broker.subscriptions.subscriptions import Subscriptions
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
    """A subscription that begins with the first entry of a topic of its own.

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
        """Return one of a new topic; where no count is given, of the size of the proof."""
        count = count or turns.sizes.entries
        own_name = f"{name}-{SubType.Name(kind)}"
        topic = await turns.topic(own_name, count, messages, **of_entries)  # type: ignore[arg-type]
        return cls(turns, topic, kind, count)

    @property
    def dispatcher(self) -> SharedDispatcher:
        """What delivers, of Shared and Key_Shared."""
        assert isinstance(self.subscription.dispatcher, SharedDispatcher)
        return self.subscription.dispatcher

    @property
    def places(self) -> Places:
        """All entries."""
        return Places(self.topic)

    def consumer(
        self, permits: int = 0, name: str = "c", cnx: QuietConnection | None = None
    ) -> QuietConsumer:
        """Connect a consumer, on a connection of its own if none is given."""
        return QuietConsumer(self.subscription, self.kind, permits, name, cnx)

    async def full_consumer(self, name: str = "c") -> QuietConsumer:
        """Connect a consumer, and let it have everything."""
        consumer = self.consumer(self.count, name)
        await consumer.has(self.count)
        return consumer

    async def measure(self, what: str, work: Awaitable[object]) -> None:
        """Measure some work, in a row with the type of the consumers."""
        await self._turns.measure(f"{what}, {SubType.Name(self.kind)}", work)

    async def all_left(self) -> None:
        """Return when what was given back, or skipped, has left the consumers that had it."""
        await settled(lambda: not self.dispatcher._leaving)

    async def save(self) -> None:
        """Have the cursor stored as if it had changed."""
        self.subscription.cursor.changed = True
        await called(self.subscription.cursor.save)
        await self.topic.ledger.flushed()

    async def delete(self) -> None:
        """Delete the topic."""
        await self._turns.broker.messaging.loaded_topics.delete(self.topic.name, force=True)
