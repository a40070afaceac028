"""Internal statistics of topics: ledgers, cursors and backlogs, in the form of Pulsar's admin.

Source: upstream PersistentTopicInternalStats, ManagedLedgerInfo.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote

from broker.admin.resources.messages.consumer_stats import date
from broker.admin.resources.messages.subjects import last_id
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.deduplication import CURSOR
from broker.messages.topic import PersistentTopic

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from broker.messages.position import Position
    from broker.messages.stores.ledger_row import LedgerInfo
    from broker.messages.stores.managed_ledger import CursorState, ManagedLedger
    from broker.messages.subscriptions.cursor import ManagedCursor
    from broker.messages.subscriptions.subscription import Subscription
    from broker.messages.topic import Topic
    from proto.names import TopicName

MOST_HOLES = 1_000
"""The largest number of ranges shown of a cursor's entries acknowledged out of order."""


def internal_stats(topic: Topic, *, metadata: bool) -> Generator[None, None, dict[str, object]]:
    """Return a topic's internal statistics (ledgers and cursors); yield after each cursor.

    Args:
        topic: A topic, or a partition.
        metadata: Whether to include each ledger's metadata.
    """
    if not isinstance(topic, PersistentTopic):
        return {**dict.fromkeys(_COUNTS, 0), "cursors": {}}
    cursors = {}
    for subscription in topic.subscriptions:
        cursors[subscription.name] = _cursor(subscription, topic)
        yield
    deduplicated = topic.ledger.cursors.get(CURSOR)
    if deduplicated is not None:
        cursors[CURSOR] = _deduplication_cursor(deduplicated, topic)
    ledger = topic.ledger
    ledgers, (added, _) = ledger.ledgers, ledger.added
    current = ledgers[-1]
    shown = [
        _ledger(
            one.ledger_id,
            one.entries if one.closed_at else 0,
            one.size_bytes if one.closed_at else 0,
        )
        for one in ledgers
    ]
    if metadata:
        for kept, one in zip(ledgers, shown, strict=True):
            one |= {"metadata": _metadata(kept, topic.name), "underReplicated": True}
    last = last_id(topic) if topic.terminated else ledger.last_confirmed
    waiting = sum(_waits(one) for one in topic.subscriptions)
    return {
        "entriesAddedCounter": added,
        "numberOfEntries": sum(one.entries for one in ledgers),
        "totalSize": ledger.size_bytes,
        "currentLedgerEntries": current.entries,
        "currentLedgerSize": current.size_bytes,
        "lastLedgerCreatedTimestamp": date(topic.created_at),
        "waitingCursorsCount": waiting,
        "pendingAddEntriesCount": 0,
        "lastConfirmedEntry": str(last),
        "state": "Terminated" if topic.terminated else "LedgerOpened",
        "ledgers": shown,
        "cursors": cursors,
        "properties": {},
        "schemaLedgers": [],
        "compactedLedger": _compacted(topic),
    }


_COUNTS = (
    "entriesAddedCounter",
    "numberOfEntries",
    "totalSize",
    "currentLedgerEntries",
    "currentLedgerSize",
    "waitingCursorsCount",
    "pendingAddEntriesCount",
)


def _ledger(ledger_id: int, entries: int, size_bytes: int) -> dict[str, object]:
    return {
        "ledgerId": ledger_id,
        "entries": entries,
        "size": size_bytes,
        "offloaded": False,
        "underReplicated": False,
    }


def _metadata(ledger: LedgerInfo, topic: TopicName) -> str:
    """Return a ledger's metadata in BookKeeper's text form, although no bookie stores it."""
    state = "OPEN"
    if ledger.closed_at:
        state = f"CLOSED, length={ledger.size_bytes}, lastEntryId={ledger.entries - 1}"
    name = f"{topic.namespace}/{topic.domain}/{quote(topic.local_name)}"
    custom = {"pulsar/managed-ledger": name, "component": "managed-ledger", "application": "pulsar"}
    encoded = ", ".join(f"{key}=base64:{_base64(value)}" for key, value in custom.items())
    return (
        "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, "
        f"state={state}, digestType=CRC32C, password=OMITTED, ensembles={{}}, "
        f"customMetadata={{{encoded}}}}}"
    )


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _compacted(topic: PersistentTopic) -> dict[str, object]:
    compacted = topic.compaction.compacted
    if compacted is None:
        return _ledger(-1, -1, -1)
    return _ledger(compacted.ledger_id, len(compacted), compacted.ledger.size_bytes)


def _waits(subscription: Subscription) -> bool:
    return bool(subscription.consumers) and subscription.cursor.at_end


def _cursor(subscription: Subscription, topic: PersistentTopic) -> dict[str, object]:
    cursor, ledger = subscription.cursor, topic.ledger
    ranges = cursor.acknowledged.ranges(MOST_HOLES)
    holes = ",".join(f"({ledger}:{first - 1}..{ledger}:{last}]" for ledger, first, last in ranges)
    read = ledger.count(cursor.mark_delete, ledger.preceding(cursor.read_position))
    waits = _waits(subscription)
    stored = _is_stored(subscription)
    mark, next_one = cursor.mark_delete, cursor.read_position
    return _cursor_body(topic, mark, next_one, cursor.backlog, stored=stored) | {
        "waitingReadOp": waits,
        "individuallyDeletedMessages": f"[{holes}]",
        "active": bool(subscription.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": read + 1,
        "totalNonContiguousDeletedMessagesRange": len(ranges),
        "subscriptionHavePendingRead": waits,
        "properties": _cursor_properties(subscription, topic),
    }


def _deduplication_cursor(state: CursorState, topic: PersistentTopic) -> dict[str, object]:
    ledger, mark = topic.ledger, state.mark_delete
    left = ledger.count(mark, ledger.last_confirmed)
    stored = bool(state.properties)
    return _cursor_body(topic, mark, ledger.following(mark), left, stored=stored) | {
        "properties": {name: int(highest) for name, highest in state.properties.items()}
    }


def _cursor_body(
    topic: PersistentTopic, mark: Position, next_one: Position, left: int, *, stored: bool
) -> dict[str, object]:
    """Return the JSON of a cursor without consumers and without out-of-order acknowledgments.

    The broker's own cursors are not stored before their first move, and then have no ledger.
    """
    return {
        "markDeletePosition": str(mark),
        "readPosition": str(next_one),
        "waitingReadOp": False,
        "pendingReadOps": 0,
        "messagesConsumedCounter": topic.ledger.added[0] - left,
        "cursorLedger": mark.ledger_id if stored else -1,
        "cursorLedgerLastEntry": 1 if stored else -1,
        "state": "Open" if stored else "NoLedger",
        "individuallyDeletedMessages": "[]",
        "lastLedgerSwitchTimestamp": date(topic.created_at),
        "active": False,
        "numberOfEntriesSinceFirstNotAckedMessage": 1,
        "totalNonContiguousDeletedMessagesRange": 0,
        "subscriptionHavePendingRead": False,
        "subscriptionHavePendingReplayRead": False,
        "properties": {},
    }


def _is_stored(subscription: Subscription) -> bool:
    return not subscription.internal or subscription.cursor.mark_delete.entry_id >= 0


def _cursor_properties(subscription: Subscription, topic: PersistentTopic) -> dict[str, int]:
    """Return a cursor's properties: for compaction's cursor, the id of the compacted ledger."""
    compacted = topic.compaction.compacted
    if compacted is None or subscription.name != SUBSCRIPTION:
        return {}
    return {"CompactedTopicLedger": compacted.ledger_id}


def internal_info(topic: PersistentTopic) -> dict[str, object]:
    """Return the ledgers and cursors of a topic, in the form of upstream's stored metadata."""
    created = date(topic.created_at)
    return {
        "version": 1,
        "creationDate": created,
        "modificationDate": created,
        "ledgers": [
            _stored_ledger(one.ledger_id, one.closed_at, topic) for one in topic.ledger.ledgers
        ],
        "cursors": {
            name: {
                "version": int(stored),
                "creationDate": created,
                "modificationDate": created,
                "cursorsLedgerId": mark.ledger_id if stored else -1,
                "markDelete": {"ledgerId": mark.ledger_id, "entryId": mark.entry_id},
            }
            for name, mark, stored in _stored_cursors(topic)
        },
    }


def _stored_cursors(topic: PersistentTopic) -> Iterator[tuple[str, Position, bool]]:
    for one in topic.subscriptions:
        if one.durable:
            yield one.name, one.cursor.mark_delete, _is_stored(one)
    deduplicated = topic.ledger.cursors.get(CURSOR)
    if deduplicated is not None:
        yield CURSOR, deduplicated.mark_delete, bool(deduplicated.properties)


def _stored_ledger(ledger_id: int, closed_at: int, topic: PersistentTopic) -> dict[str, object]:
    return {
        "ledgerId": ledger_id,
        "timestamp": closed_at or topic.clock.wall_ms(),
        "isOffloaded": False,
    }


MOST_ANALYZED = 10_000
"""The number of entries after which the analysis of a backlog ends
(subscriptionBacklogScanMaxEntries)."""
_READ_ENTRIES, _READ_BYTES = 100, 1024 * 1024


async def analyzed(
    cursor: ManagedCursor, ledger: ManagedLedger, position: Position
) -> dict[str, object]:
    """Count the entries and messages from a position on, reading the store in steps.

    Entries acknowledged out of order are left out; those before the backlog count (upstream:
    OpScan).

    Returns:
        The body of the response; its member ``aborted`` is True with more than MOST_ANALYZED
            entries.
    """
    last = ledger.last_confirmed
    entries = messages = 0
    ends: list[Position] = []
    while position <= last and entries < MOST_ANALYZED:
        found = await ledger.fetch(position, _READ_ENTRIES, _READ_BYTES)
        if not found:
            break
        for entry in found:
            if entry.position in cursor.acknowledged:
                continue
            ends = [*ends[:1], entry.position]
            entries += 1
            messages += entry.message_count
        position = ledger.following(found[-1].position)
        await asyncio.sleep(0)
    return {
        "entries": entries,
        "messages": messages,
        "markerMessages": 0,
        "filterRejectedEntries": 0,
        "filterAcceptedEntries": entries,
        "filterRescheduledEntries": 0,
        "filterRejectedMessages": 0,
        "filterAcceptedMessages": messages,
        "filterRescheduledMessages": 0,
        "aborted": position <= last and entries >= MOST_ANALYZED,
        **({"firstMessageId": str(ends[0]), "lastMessageId": str(ends[-1])} if ends else {}),
    }


def offline_stats(name: TopicName, topic: PersistentTopic | None, broker: str) -> dict[str, object]:
    """Return the sizes of a topic's ledgers, and the backlog of each subscription.

    Args:
        name: The topic's name.
        topic: The topic; None if it does not exist.
        broker: The broker's address for clients.

    Source: upstream PersistentOfflineTopicStats.
    """
    ledgers = [] if topic is None else topic.ledger.ledgers
    cursors = {} if topic is None else {one.name: one.cursor for one in topic.subscriptions}
    backlogs = {subscription: cursor.backlog for subscription, cursor in cursors.items()}
    return {
        "topicName": f"{name.namespace}/{name.domain}/{name.local_name}",
        "brokerName": broker,
        "storageSize": sum(one.size_bytes for one in ledgers),
        "totalMessages": sum(one.entries for one in ledgers),
        "messageBacklog": sum(backlogs.values()),
        "dataLedgerDetails": [
            {
                "entries": one.entries,
                "timestamp": one.closed_at,
                "size": one.size_bytes,
                "ledgerId": one.ledger_id,
            }
            for one in ledgers
            if one.closed_at
        ],
        "cursorDetails": {
            subscription: {"cursorBacklog": backlog, "cursorLedgerId": -1}
            for subscription, backlog in backlogs.items()
        },
    }
