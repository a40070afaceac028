"""The choice of a message store by ``floodgateMessageStore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import StoreBounds
from broker.messages.stores.sqlite.store import DatabaseOptions, SqliteMessageStore

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig
    from limiter.clock import Clock


def message_store_for(
    config: BrokerConfig, clock: Clock
) -> MemoryMessageStore | SqliteMessageStore:
    """Return the configured store, not yet opened.

    Args:
        config: The broker's configuration.
        clock: For retries on a full disk, and for closing times of ledgers.
    """
    keys = config.message_store
    bounds = StoreBounds(keys.max_topic_bytes, keys.max_namespace_bytes, keys.max_bytes)
    place = keys.place.database or keys.place.temporary_in
    if place is None:
        return MemoryMessageStore(bounds, keys.max_entries_per_ledger, clock.wall_ms)
    options = DatabaseOptions(
        keys.fsync,
        keys.drop_damaged,
        keys.place.database is None,
        keys.max_entries_per_ledger,
    )
    return SqliteMessageStore(place, clock, bounds, options)
