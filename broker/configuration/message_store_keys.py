"""The configuration keys of the message store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.configuration.common import MEGABYTE_BYTES

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

STORE_KEY = "floodgateMessageStore"
FSYNC_KEY = "floodgateMessageStoreFsync"
DROP_DAMAGED_KEY = "floodgateMessageStoreDropDamaged"
MAX_KEY = "floodgateMessageStoreMaxMB"
MAX_NAMESPACE_KEY = "floodgateMessageStoreMaxNamespaceMB"
MAX_TOPIC_KEY = "floodgateMessageStoreMaxTopicMB"

MOST_MEMORY_BYTES = 1024 * MEGABYTE_BYTES
"""Most bytes of messages in memory, unless a quarter of the machine's memory is less."""
MOST_LOG_BYTES = 10 * 1024 * MEGABYTE_BYTES
"""Most bytes of messages in a log."""

_LOG_SCHEME = "log:///"


@dataclass(frozen=True, slots=True)
class MessageStoreKeys:
    """The message store that is configured.

    Attributes:
        log_directory: floodgateMessageStore=log:///path: where the log is; None for memory.
        fsync: floodgateMessageStoreFsync: confirm a message when the disk has it.
        drop_damaged: floodgateMessageStoreDropDamaged: start without what is damaged.
        max_bytes: floodgateMessageStoreMaxMB; 0 is no bound, as for the next two.
        max_namespace_bytes: floodgateMessageStoreMaxNamespaceMB.
        max_topic_bytes: floodgateMessageStoreMaxTopicMB.
        max_entries_per_ledger: managedLedgerMaxEntriesPerLedger.
    """

    log_directory: Path | None = None
    fsync: bool = False
    drop_damaged: bool = False
    max_bytes: int = MOST_MEMORY_BYTES
    max_namespace_bytes: int = 0
    max_topic_bytes: int = 0
    max_entries_per_ledger: int = 50_000

    @property
    def told(self) -> dict[str, str]:
        """The store and its bounds, as keys with the values in force."""
        directory = self.log_directory
        return {
            STORE_KEY: "memory" if directory is None else f"log://{directory}",
            FSYNC_KEY: str(self.fsync).lower(),
            MAX_KEY: str(self.max_bytes // MEGABYTE_BYTES),
            MAX_NAMESPACE_KEY: str(self.max_namespace_bytes // MEGABYTE_BYTES),
            MAX_TOPIC_KEY: str(self.max_topic_bytes // MEGABYTE_BYTES),
        }


def message_store_keys(checked: CheckedKeys) -> MessageStoreKeys:
    """Read the keys; what does not fit becomes a problem."""
    url = checked.text(STORE_KEY) or "memory"
    # The path is absolute, and may have a slash more: log:////path means the same.
    path, _, option = url.removeprefix(_LOG_SCHEME).lstrip("/").partition("?")
    is_log = url.startswith(_LOG_SCHEME) and bool(path) and option in _FSYNC_OPTIONS
    if not is_log and url not in ("memory", "memory:local"):
        checked.refuse(
            f"{STORE_KEY}={url!r}: expected memory, log:///path or log:///path?fsync=true"
        )
    most = MOST_LOG_BYTES if is_log else _most_memory_bytes()
    return MessageStoreKeys(
        log_directory=Path("/", path) if is_log else None,
        fsync=_FSYNC_OPTIONS.get(option, False) or checked.flag(FSYNC_KEY),
        drop_damaged=checked.flag(DROP_DAMAGED_KEY),
        max_bytes=_bytes(checked, MAX_KEY) if checked.is_set(MAX_KEY) else most,
        max_namespace_bytes=_bytes(checked, MAX_NAMESPACE_KEY),
        max_topic_bytes=_bytes(checked, MAX_TOPIC_KEY),
        max_entries_per_ledger=checked.positive("managedLedgerMaxEntriesPerLedger"),
    )


_FSYNC_OPTIONS = {"": False, "fsync=false": False, "fsync=true": True}


def _bytes(checked: CheckedKeys, key: str) -> int:
    return checked.integer(key) * MEGABYTE_BYTES


def _most_memory_bytes() -> int:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(MOST_MEMORY_BYTES, machine // 4)
