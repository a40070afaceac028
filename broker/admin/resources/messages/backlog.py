"""Counts of a subscription's unacknowledged entries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.messages.position import Position

if TYPE_CHECKING:
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.subscriptions.cursor import ManagedCursor
    from broker.messages.topic import PersistentTopic
    from proto.names import TopicName

MOST_ANALYZED = 10_000
"""Entries after which an analysis ends (subscriptionBacklogScanMaxEntries)."""
_READ_ENTRIES, _READ_BYTES = 100, 1024 * 1024


async def analyzed(cursor: ManagedCursor, ledger: ManagedLedger) -> dict[str, object]:
    """Count the unacknowledged entries of a cursor, yielding to the event loop after each read.

    Returns:
        The body of the response; ``aborted`` with more than MOST_ANALYZED entries.
    """
    position, last = cursor.first_left, ledger.last_confirmed
    entries = messages = 0
    first_read = last_read = Position(-1, -1)
    while position <= last and entries < MOST_ANALYZED:
        found = await ledger.fetch(position, _READ_ENTRIES, _READ_BYTES)
        if not found:
            break
        for entry in found:
            if cursor.is_acknowledged(entry.position):
                continue
            first_read = entry.position if not entries else first_read
            last_read = entry.position
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
        "firstMessageId": str(first_read),
        "lastMessageId": str(last_read),
    }


def offline_stats(name: TopicName, topic: PersistentTopic | None, broker: str) -> dict[str, object]:
    """Return the content of a topic's ledgers, and each subscription's backlog.

    Args:
        name: The topic's name.
        topic: The topic; None if missing.
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
