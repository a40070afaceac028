"""A topic with messages in memory, subscriptions and compaction, without producers."""

from __future__ import annotations

from broker.messages.compaction.compactor import Compactor
from broker.messages.compaction.topic_compaction import TopicCompaction
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.position import Position
from broker.messages.statistics import PublishStatistics
from broker.messages.stores.managed_ledger import ManagedLedger
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.subscriptions import Subscriptions
from broker.policies.effective import DEFAULTS
from proto.names import TopicName
from server.tasks.cooperative import SharedTurns
from tests.support.clocks.manual_clock import ManualClock
from tests.support.subscriptions.messages import message


class StoredTopic:
    """A topic as its subscriptions and compaction need it."""

    terminated = False

    def __init__(self, store: MemoryMessageStore, ledger: ManagedLedger) -> None:
        self.store = store
        self.name = TopicName.parse("persistent://t/n/x")
        self.ledger = ledger
        self.policies = DEFAULTS
        self.clock = ManualClock()
        self.rules = SubscriptionRules()
        self.turns = SharedTurns()
        self.statistics = PublishStatistics()
        self.compaction = TopicCompaction(self)
        self.subscriptions = Subscriptions(self)

    @classmethod
    async def loaded(cls, store: MemoryMessageStore) -> StoredTopic:
        """Return the topic loaded from a store, as a broker opens it."""
        topic = cls(store, await store.open_ledger("persistent://t/n/x"))
        await topic.compaction.open(Compactor(store))
        return topic

    def touched(self) -> None:
        """Do nothing: no periodic work visits the topic."""

    async def unload(self) -> None:
        """Unload the topic; it can be loaded again."""
        await self.compaction.close()
        self.subscriptions.save()
        self.store.close_ledger("persistent://t/n/x")

    def append(self, data: bytes) -> Position:
        position = self.ledger.append(data, digest_of(parse_metadata(data)))
        self.subscriptions.entries_added()
        return position

    def publish(self, payload: bytes, key: str | None = None, **fields: object) -> Position:
        return self.append(message(payload, key=key, **fields))

    async def compact(self) -> None:
        self.compaction.start()
        await self.compaction.finished()
