"""The compaction of one topic: its compacted entries, status and statistics."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import proto.PulsarApi_pb2 as pb
from broker.errors import Refusal, RefusedError
from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.compaction.compactor import (
    compacted_name,
    delete_unused,
    set_unused,
    unused_ids,
)
from broker.messages.compaction.latest_keys import TooManyKeysError
from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.compaction.compactor import Compactor
    from broker.messages.entry import Entry
    from broker.messages.stores.managed_ledger import ManagedLedger, MessageStore
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

SUBSCRIPTION = "__compaction"
"""The name of compaction's subscription, which keeps uncompacted entries; clients can see it."""
PROPERTY = "compaction"
"""Name of the ledger property for the compacted ledger's number and the horizon."""


class CompactionStatus(Enum):
    """The statuses of a compaction in the REST API (upstream: LongRunningProcessStatus)."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactableTopic(Protocol):
    """The interface (typing Protocol) with the attributes of a topic that compaction needs."""

    ledger: ManagedLedger
    policies: EffectivePolicies
    clock: Clock
    subscriptions: Any
    """Provides ``get(name)`` and ``create(name, earliest=)``, returning subscriptions."""


class TopicCompaction:
    """The compaction of one topic: its status, and the entries it has kept.

    Attributes:
        compacted: The entries of the last compaction; None before the first.
        status: The status of the last compaction since the topic was loaded.
        last_error: The error text of the last failed compaction.
        removed: Messages removed by the last compaction.
        succeeded_at, failed_at: Time of the last success and failure, in ms since 1970; 0 for
            never.
        duration_ms: Duration of the last compaction.

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
        """Open the entries kept by an earlier compaction while the topic is being loaded.

        Raises:
            MessageStoreError: The entries cannot be read.
        """
        self._compactor = compactor
        ledger, store = self._topic.ledger, compactor.store
        await self._delete_unused()
        kept = _kept(ledger)
        if kept is not None:
            ledger_id, horizon = kept
            own = await store.open_ledger(compacted_name(ledger.name, ledger_id))
            self.compacted = CompactedEntries(own, ledger_id, horizon)
            await self.compacted.recover()

    def holds_last(self) -> bool:
        """Return True if the topic's last message must be read from the compacted entries."""
        ledger = self._topic.ledger
        last = ledger.last_confirmed
        compacted = self.compacted
        return compacted is not None and (last <= compacted.horizon or not ledger.holds(last))

    async def last_entry(self) -> Entry | None:
        """Return the last entry that the last compaction kept; None if there is none.

        Raises:
            MessageStoreError: The entry cannot be read.
        """
        while (compacted := self.compacted) is not None:
            try:
                return await compacted.last_entry()
            except MessageStoreError:
                if self.compacted is compacted:
                    raise
        return None

    # -- running ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start compacting the topic in the background.

        Raises:
            RefusedError: A compaction is running.
        """
        if self.status is CompactionStatus.RUNNING:
            raise RefusedError(Refusal.CONFLICT, "Compaction already in progress")
        self.status, self.last_error = CompactionStatus.RUNNING, ""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def keep_for_later(self) -> None:
        """If compaction has a threshold, create its subscription, which keeps uncompacted entries.

        A real broker does the same (recorded). Without the subscription, the broker would delete
        messages that no other subscription needs before the first compaction.
        """
        if self._topic.policies.compaction_threshold_bytes > 0:
            subscriptions = self._topic.subscriptions
            if subscriptions.get(SUBSCRIPTION) is None:
                subscriptions.create(SUBSCRIPTION, earliest=True, limited=False)

    @property
    def is_due(self) -> bool:
        """True if the uncompacted entries exceed the threshold, and no compaction is running."""
        threshold = self._topic.policies.compaction_threshold_bytes
        if threshold <= 0 or self.status is CompactionStatus.RUNNING:
            return False
        subscription = self._topic.subscriptions.get(SUBSCRIPTION)
        ledger = self._topic.ledger
        waiting = ledger.size_bytes if subscription is None else subscription.cursor.backlog_bytes
        return waiting > threshold

    def start_if_due(self) -> bool:
        """Start a compaction if the topic exceeds its threshold; return True if one was started."""
        if is_due := self.is_due:
            self.start()
        return is_due

    async def _run(self) -> None:
        clock = self._topic.clock
        began = clock.now()
        try:
            await self._compact()
        except (MessageStoreError, TooManyKeysError, RequestError) as error:
            text = error.message if isinstance(error, RequestError) else str(error)
            logger.warning("%s was not compacted: %s", self._topic.ledger.name, text)
            self.last_error = text
        except Exception as error:
            logger.exception("%s was not compacted", self._topic.ledger.name)
            self.last_error = str(error) or type(error).__name__
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
        elif not subscription.durable:  # Would end with its reader.
            text = f"NonDurable subscription {SUBSCRIPTION} already exists."
            raise RequestError(pb.NotAllowedError, text)
        before = self.compacted
        after, self.removed = await self._compactor.compact(ledger, before)
        ledger.set_property(PROPERTY, f"{after.ledger_id} {after.horizon}")
        set_unused(ledger, *(() if before is None else (before.ledger_id,)))
        self.compacted = after
        await ledger.flushed()
        # Only after the flush: ledgers skipped by the subscription are dropped.
        subscription.skip_through(after.horizon)
        await delete_unused(self._compactor.store, ledger)

    # -- closing ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Delete the compacted entries, because compaction's subscription was deleted.

        A real broker deletes them, too (recorded). A running compaction is cancelled; a real broker
        waits until it ends.
        """
        if self._task is not None:
            self._task.cancel()
        self.compacted = None
        _disuse(self._topic.ledger)
        self._deletion = asyncio.get_running_loop().create_task(self._delete_unused())

    async def _delete_unused(self) -> None:
        """Delete compacted ledgers that are no longer used; the next call retries a failure."""
        ledger = self._topic.ledger
        try:
            await delete_unused(self._compactor.store, ledger)
        except MessageStoreError as error:
            logger.warning("compacted entries of %s are not deleted: %s", ledger.name, error)

    async def finished(self) -> None:
        """Wait until no compaction of the topic is running."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Cancel a running compaction and close the compacted ledger, as the topic is unloaded."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._deletion is not None:
            await self._deletion
        if self.compacted is not None:
            self._compactor.store.close_ledger(self.compacted.ledger.name)


async def delete_compacted(store: MessageStore, topic: str) -> None:
    """Delete the compacted entries of a topic that is about to be deleted.

    Raises:
        MessageStoreError: The store failed.
    """
    if not store.holds(topic):
        return
    ledger = await store.open_ledger(topic)
    _disuse(ledger)
    await delete_unused(store, ledger)


def _disuse(ledger: ManagedLedger) -> None:
    kept = _kept(ledger)
    if kept is not None:
        set_unused(ledger, kept[0], *unused_ids(ledger))
        ledger.set_property(PROPERTY, None)


def _kept(ledger: ManagedLedger) -> tuple[int, Position] | None:
    """Return the compacted ledger's id and the topic's last compacted position.

    Return None before the first compaction.
    """
    text = ledger.properties.get(PROPERTY)
    if text is None:
        return None
    ledger_id, _, horizon = text.partition(" ")
    horizon_ledger, _, horizon_entry = horizon.partition(":")
    return int(ledger_id), Position(int(horizon_ledger), int(horizon_entry))
