"""The configuration keys of the message store."""

from __future__ import annotations

import os
import tempfile
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
"""Most bytes of messages in memory, at most a quarter of the machine's memory."""
MOST_DATABASE_BYTES = 10 * 1024 * MEGABYTE_BYTES
"""Most bytes of messages in a database; in a temporary database at most half of the disk's free
space."""

TEMPORARY, MEMORY = "temporary", "memory"
_SQLITE_SCHEME = "sqlite:///"
_OLD_LOG = (
    "logs were replaced by databases, and are not read any more; let consumers take what it holds "
    "from a broker of the version that wrote it, then set sqlite:///path/messages.db"
)


@dataclass(frozen=True, slots=True)
class MessageStoreKeys:
    """The configured message store.

    Attributes:
        in_memory: floodgateMessageStore=memory.
        database: floodgateMessageStore=sqlite:///path: the file.
        temporary_in: floodgateMessageStore=temporary: the folder of the temporary database.
        fsync: floodgateMessageStoreFsync: confirm a message once it is on disk.
        drop_damaged: floodgateMessageStoreDropDamaged: skip damaged data.
        max_bytes: floodgateMessageStoreMaxMB; 0 is unlimited, also for the next two bounds.
        max_namespace_bytes: floodgateMessageStoreMaxNamespaceMB.
        max_topic_bytes: floodgateMessageStoreMaxTopicMB.
        max_entries_per_ledger: managedLedgerMaxEntriesPerLedger.
    """

    in_memory: bool = True
    database: Path | None = None
    temporary_in: Path | None = None
    fsync: bool = False
    drop_damaged: bool = False
    max_bytes: int = MOST_MEMORY_BYTES
    max_namespace_bytes: int = 0
    max_topic_bytes: int = 0
    max_entries_per_ledger: int = 50_000

    @property
    def told(self) -> dict[str, str]:
        """The store and its bounds, as keys with effective values."""
        named = TEMPORARY if self.temporary_in is not None else f"sqlite://{self.database}"
        return {
            STORE_KEY: MEMORY if self.in_memory else named,
            FSYNC_KEY: str(self.fsync).lower(),
            MAX_KEY: str(self.max_bytes // MEGABYTE_BYTES),
            MAX_NAMESPACE_KEY: str(self.max_namespace_bytes // MEGABYTE_BYTES),
            MAX_TOPIC_KEY: str(self.max_topic_bytes // MEGABYTE_BYTES),
        }


def temporary_store() -> MessageStoreKeys:
    """Return the defaults."""
    return MessageStoreKeys(
        in_memory=False,
        temporary_in=temporary_place(),
        max_bytes=_most_bytes(in_memory=False, temporary=True),
    )


def message_store_keys(checked: CheckedKeys) -> MessageStoreKeys:
    """Parse the keys; report unusable values as problems."""
    url = checked.text(STORE_KEY) or TEMPORARY
    # The path is absolute: sqlite:////path with a fourth slash is equivalent.
    path, _, option = url.removeprefix(_SQLITE_SCHEME).lstrip("/").partition("?")
    is_file = url.startswith(_SQLITE_SCHEME) and bool(path) and option in _FSYNC_OPTIONS
    in_memory = url in (MEMORY, "memory:local")
    if url.startswith("log://"):
        checked.refuse(f"{STORE_KEY}={url!r}: {_OLD_LOG}")
    elif not is_file and not in_memory and url != TEMPORARY:
        checked.refuse(
            f"{STORE_KEY}={url!r}: expected temporary, memory, sqlite:///path/messages.db or "
            "sqlite:///path/messages.db?fsync=true"
        )
    return MessageStoreKeys(
        in_memory=in_memory,
        database=Path("/", path) if is_file else None,
        temporary_in=None if is_file or in_memory else temporary_place(),
        fsync=_FSYNC_OPTIONS.get(option, False) or checked.flag(FSYNC_KEY),
        drop_damaged=checked.flag(DROP_DAMAGED_KEY),
        max_bytes=_bytes(checked, MAX_KEY)
        if checked.is_set(MAX_KEY)
        else _most_bytes(in_memory=in_memory, temporary=not is_file),
        max_namespace_bytes=_bytes(checked, MAX_NAMESPACE_KEY),
        max_topic_bytes=_bytes(checked, MAX_TOPIC_KEY),
        max_entries_per_ledger=checked.positive("managedLedgerMaxEntriesPerLedger"),
    )


_FSYNC_OPTIONS = {"": False, "fsync=false": False, "fsync=true": True}


def temporary_place() -> Path:
    """Return the folder of temporary databases: on a disk, as /tmp is often memory."""
    named = os.environ.get("TMPDIR")
    if named:
        return Path(named)
    disk = Path("/var/tmp")
    return disk if os.access(disk, os.W_OK) else Path(tempfile.gettempdir())


def _bytes(checked: CheckedKeys, key: str) -> int:
    return checked.integer(key) * MEGABYTE_BYTES


def _most_bytes(*, in_memory: bool, temporary: bool) -> int:
    if in_memory:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return min(MOST_MEMORY_BYTES, machine // 4)
    if not temporary:
        return MOST_DATABASE_BYTES
    try:
        disk = os.statvfs(temporary_place())
    except OSError:
        return MOST_DATABASE_BYTES  # The broker's start reports the missing folder.
    # Whole megabytes, at least 1: 0 would be unlimited.
    free = max(1, disk.f_bavail * disk.f_frsize // 2 // MEGABYTE_BYTES) * MEGABYTE_BYTES
    return min(MOST_DATABASE_BYTES, free)
