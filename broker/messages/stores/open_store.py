"""The choice of a message store by ``floodgateMessageStore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.messages.stores.log.files import DiskFiles
from broker.messages.stores.log.store import LogMessageStore, LogOptions
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import StoreBounds

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig
    from limiter.clock import Clock


def message_store_for(config: BrokerConfig, clock: Clock) -> MemoryMessageStore | LogMessageStore:
    """Return the store that is configured, not yet opened.

    Args:
        config: The broker's configuration.
        clock: For what is done at most once a second, and for when ledgers are closed.
    """
    keys = config.message_store
    bounds = StoreBounds(keys.max_topic_bytes, keys.max_namespace_bytes, keys.max_bytes)
    if keys.log_directory is None:
        return MemoryMessageStore(bounds, keys.max_entries_per_ledger, clock.wall_ms)
    options = LogOptions(keys.fsync, keys.drop_damaged, keys.max_entries_per_ledger)
    files = DiskFiles(keys.log_directory)
    return LogMessageStore(files, clock, bounds, options, clock.wall_ms)
