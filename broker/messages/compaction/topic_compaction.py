"""The compaction of one topic: what it has left, whether it runs, and how it went."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import proto.PulsarApi_pb2 as pb
from broker.errors import Refusal, RefusedError
from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.compaction.compactor import UNUSED_PROPERTY, compacted_name
from broker.messages.compaction.latest_keys import TooManyKeysError
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import Position
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.messages.compaction.compactor import Compactor
    from broker.messages.managed_ledger import ManagedLedger, MessageStore
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

SUBSCRIPTION = "__compaction"
"""The subscription that holds what is not compacted yet; clients see it like any other."""
PROPERTY = "compaction"
"""Under this name a ledger keeps the number of its compacted entries' ledger, and the horizon."""


class CompactionStatus(Enum):
    """The states that REST shows (upstream: LongRunningProcessStatus)."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactableTopic(Protocol):
    """A topic whose messages are stored, as far as its compaction depends on it."""

    ledger: ManagedLedger
    policies: EffectivePolicies
    clock: Clock
    subscriptions: Any
    """Has ``get(name)`` and ``create(name, earliest=)``, which return subscriptions."""


class TopicCompaction:
    """The compaction of one topic.

    Attributes:
        compacted: What the last one has left; None before the first.
        status: Of the last one since the topic was loaded.
        last_error: Says why it failed.
        removed: Messages that the last one did not keep.
        succeeded_at, failed_at: When that last happened, in ms since 1970; 0 for never.
        duration_ms: Of the last one.

    Source: upstream PersistentTopic.triggerCompaction.
    """

    def __init__(self, topic: CompactableTopic) -> None:
        self._topic = topic
        self._compactor: Compactor
        self._task: asyncio.Task[None] | None = None
        self._deletion: asyncio.Task[None] | None = None
        self.compacted: CompactedEntries | None = None
        self.status = CompactionStatus.NOT_RUN
        self.last_error = ""
        self.removed = 0
        self.succeeded_at = 0
        self.failed_at = 0
        self.duration_ms = 0

    async def open(self, compactor: Compactor) -> None:
        """Take up what an earlier compaction has left; the topic was just loaded.

        Raises:
            MessageStoreError: It cannot be read.
        """
        self._compactor = compactor
        ledger, store = self._topic.ledger, compactor.store
        unused = ledger.properties.get(UNUSED_PROPERTY)
        if unused is not None:
            await store.delete_ledger(unused)
            ledger.set_property(UNUSED_PROPERTY, None)
        kept = _kept(ledger)
        if kept is not None:
            ledger_id, horizon = kept
            own = await store.open_ledger(compacted_name(ledger.name, ledger_id))
            self.compacted = CompactedEntries(own, ledger_id, horizon)
            await self.compacted.recover()

    # -- running ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a compaction.

        Raises:
            RefusedError: One is under way.
        """
        if self.status is CompactionStatus.RUNNING:
            raise RefusedError(Refusal.CONFLICT, "Compaction already in progress")
        self.status, self.last_error = CompactionStatus.RUNNING, ""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def start_if_due(self) -> bool:
        """Start one if more is uncompacted than the policies of the topic allow."""
        threshold = self._topic.policies.compaction_threshold_bytes
        if threshold <= 0 or self.status is CompactionStatus.RUNNING:
            return False
        subscription = self._topic.subscriptions.get(SUBSCRIPTION)
        ledger = self._topic.ledger
        waiting = ledger.size_bytes if subscription is None else subscription.cursor.backlog_bytes
        if waiting <= threshold:
            return False
        self.start()
        return True

    async def _run(self) -> None:
        clock = self._topic.clock
        began = clock.now()
        try:
            await self._compact()
        except (MessageStoreError, TooManyKeysError, RequestError) as error:
            text = error.message if isinstance(error, RequestError) else str(error)
            logger.warning("%s was not compacted: %s", self._topic.ledger.name, text)
            self.last_error = text
        else:
            self.status = CompactionStatus.SUCCESS
            self.succeeded_at = clock.wall_ms()
        finally:
            if self.status is CompactionStatus.RUNNING:
                self.status = CompactionStatus.ERROR
                self.failed_at = clock.wall_ms()
            self.duration_ms = round((clock.now() - began) * 1000)

    async def _compact(self) -> None:
        subscriptions, ledger = self._topic.subscriptions, self._topic.ledger
        subscription = subscriptions.get(SUBSCRIPTION)
        if subscription is None:
            subscription = subscriptions.create(SUBSCRIPTION, earliest=True)
        elif not subscription.durable:  # It would end with its reader, and keep nothing till then.
            text = f"NonDurable subscription {SUBSCRIPTION} already exists."
            raise RequestError(pb.NotAllowedError, text)
        before = self.compacted
        after, self.removed = await self._compactor.compact(ledger, before)
        ledger.set_property(PROPERTY, f"{after.ledger_id} {after.horizon}")
        ledger.set_property(UNUSED_PROPERTY, None if before is None else before.ledger.name)
        await ledger.flushed()
        self.compacted = after
        # Only now: ledgers that this subscription does not need any more are dropped.
        subscription.skip_through(after.horizon)
        if before is not None:
            await self._compactor.store.delete_ledger(before.ledger.name)
            ledger.set_property(UNUSED_PROPERTY, None)

    # -- its end ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Delete what compactions have left: their subscription was deleted (recorded).

        One that is under way ends. (A real broker waits for it.)
        """
        if self._task is not None:
            self._task.cancel()
        ledger, self.compacted = self._topic.ledger, None
        left = [one for one in (_kept_name(ledger), ledger.properties.get(UNUSED_PROPERTY)) if one]
        ledger.set_property(PROPERTY, None)
        ledger.set_property(UNUSED_PROPERTY, left[0] if left else None)
        self._deletion = asyncio.get_running_loop().create_task(self._delete(left))

    async def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                await self._compactor.store.delete_ledger(name)
            except MessageStoreError as error:
                logger.warning("%s is not deleted: %s", name, error)

    async def finished(self) -> None:
        """Return when no compaction is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop a compaction, and close what the last one has left: the topic is unloaded."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._deletion is not None:
            await self._deletion
        if self.compacted is not None:
            self._compactor.store.close_ledger(self.compacted.ledger.name)


async def delete_compacted(store: MessageStore, topic: str) -> None:
    """Delete what compactions have left of a topic that is deleted next.

    Raises:
        MessageStoreError: The store failed.
    """
    if not store.holds(topic):
        return
    ledger = await store.open_ledger(topic)
    for left in (ledger.properties.get(UNUSED_PROPERTY), _kept_name(ledger)):
        if left is not None:
            await store.delete_ledger(left)


def _kept_name(ledger: ManagedLedger) -> str | None:
    kept = _kept(ledger)
    return None if kept is None else compacted_name(ledger.name, kept[0])


def _kept(ledger: ManagedLedger) -> tuple[int, Position] | None:
    """Return the number of the compacted entries' ledger, and the horizon; None for none."""
    text = ledger.properties.get(PROPERTY)
    if text is None:
        return None
    ledger_id, _, horizon = text.partition(" ")
    horizon_ledger, _, horizon_entry = horizon.partition(":")
    return int(ledger_id), Position(int(horizon_ledger), int(horizon_entry))
