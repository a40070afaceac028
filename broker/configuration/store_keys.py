"""The configuration keys of the metadata store and of the message store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.stores.store_url import EXPECTED_STORES, OUR_STORES, usable_store_url, without_password
from server.configuration.secret_sources import PLACES, KeySourceError, read_source
from server.configuration.settings import Key, Read, Settings, megabytes

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

DEFAULT_METADATA_STORE_URL = "memory:local"


class StoreUrl(str):
    """The URL of a store; its ``repr`` hides the password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(without_password(str(self)))


def metadata_store_url(checked: CheckedKeys) -> StoreUrl:
    """Return the metadata store's URL; report an invalid URL as a configuration problem."""
    return StoreUrl(_chosen(checked))


def _chosen(checked: CheckedKeys) -> str:
    """Return the metadata store's URL from Floodgate's key, otherwise from upstream's.

    An unsupported URL in upstream's key is ignored with a warning.
    """
    own_key = "floodgateMetadataStoreUrl"
    own = _stated(checked, own_key)
    upstream_key = next(
        (key for key in ("metadataStoreUrl", "zookeeperServers") if checked.text(key)),
        "metadataStoreUrl",
    )
    upstream = _stated(checked, upstream_key)
    if own:
        return _usable_store_url(checked, own_key, own)
    if upstream and upstream.lower().startswith(OUR_STORES):
        return _usable_store_url(checked, upstream_key, upstream)
    if upstream:
        checked.warn(
            f"{upstream_key}={without_password(upstream)}: this store is not supported, "
            f"topics live in {DEFAULT_METADATA_STORE_URL} and end with the process; "
            "floodgateMetadataStoreUrl=sqlite:///path keeps them"
        )
    return DEFAULT_METADATA_STORE_URL


def _stated(checked: CheckedKeys, key: str) -> str:
    """Return the store URL in a key; the key may name a file or environment variable with the URL.

    The file or variable keeps the password out of the configuration.
    """
    given = checked.text(key) or ""
    if not given.startswith(PLACES):
        return given
    try:
        url = read_source(given).decode().strip()
    except (KeySourceError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, KeySourceError) else "it is no text"
    else:
        if usable_store_url(url):
            return url
        reason = f"the URL in it is none of {EXPECTED_STORES}"
    # The source's content is never shown: it may be a bare password.
    checked.refuse(f"{key}={given!r:.200}: {reason}")
    return DEFAULT_METADATA_STORE_URL


def _usable_store_url(checked: CheckedKeys, key: str, url: str) -> str:
    if not usable_store_url(url):
        checked.refuse(f"{key}={without_password(url)!r}: expected {EXPECTED_STORES}")
    return url


STORE_KEY = "floodgateMessageStore"
FSYNC_KEY = "floodgateMessageStoreFsync"
MAX_KEY = "floodgateMessageStoreMaxMB"
MAX_NAMESPACE_KEY = "floodgateMessageStoreMaxNamespaceMB"
MAX_TOPIC_KEY = "floodgateMessageStoreMaxTopicMB"

MOST_MEMORY_BYTES = megabytes(1024)
"""The default limit in bytes of messages in memory, or a quarter of the machine's memory if that is
less."""
MOST_DATABASE_BYTES = megabytes(10 * 1024)
"""Most bytes of messages in a database; in a temporary database at most half of the disk's free
space."""

TEMPORARY, MEMORY = "temporary", "memory"
_SQLITE_SCHEME = "sqlite:///"
_OLD_LOG = (
    "logs were replaced by databases, and are not read any more; let consumers read its messages "
    "from a broker of the version that wrote it, then set sqlite:///path/messages.db"
)


class Place(NamedTuple):
    """Where messages are stored: in memory, in a database, or in a temporary database."""

    database: Path | None = None
    temporary_in: Path | None = None


def _place(checked: CheckedKeys) -> Place:
    """Parse floodgateMessageStore, whose URL may also set floodgateMessageStoreFsync."""
    url = checked.text(STORE_KEY) or TEMPORARY
    if url in (MEMORY, "memory:local"):
        checked.choose(STORE_KEY, MEMORY)
        return Place()
    # The path is absolute: sqlite:////path with a fourth slash is equivalent.
    path, _, option = url.removeprefix(_SQLITE_SCHEME).lstrip("/").partition("?")
    if url.startswith(_SQLITE_SCHEME) and path and option in _FSYNC_OPTIONS:
        checked.choose(STORE_KEY, f"{_SQLITE_SCHEME}{path}")
        checked.choose(FSYNC_KEY, _FSYNC_OPTIONS[option] or checked.flag(FSYNC_KEY))
        return Place(database=Path("/", path))
    if url.startswith("log://"):
        checked.refuse(f"{STORE_KEY}={url!r}: {_OLD_LOG}")
    elif url != TEMPORARY:
        checked.refuse(
            f"{STORE_KEY}={url!r}: expected temporary, memory, sqlite:///path/messages.db or "
            "sqlite:///path/messages.db?fsync=true"
        )
    return Place(temporary_in=temporary_place())


def _max_bytes(checked: CheckedKeys) -> int:
    if checked.is_set(MAX_KEY):
        return megabytes(checked.integer(MAX_KEY))
    most = _most_bytes(_place(checked))
    checked.choose(MAX_KEY, most // megabytes(1))
    return most


class MessageStoreKeys(Settings):
    """The configuration of the message store; a limit of 0 is unlimited."""

    place: Place = Read(_place)
    fsync: bool = Key(FSYNC_KEY)
    """True to confirm a message only once it is on the disk."""
    drop_damaged: bool = Key("floodgateMessageStoreDropDamaged")
    """True to skip damaged data instead of raising an error."""
    max_bytes: int = Read(_max_bytes)
    """floodgateMessageStoreMaxMB."""
    max_namespace_bytes: int = Key(MAX_NAMESPACE_KEY, megabytes)
    max_topic_bytes: int = Key(MAX_TOPIC_KEY, megabytes)
    max_entries_per_ledger: int = Key("managedLedgerMaxEntriesPerLedger")


SHOWN_KEYS = (STORE_KEY, FSYNC_KEY, MAX_KEY, MAX_NAMESPACE_KEY, MAX_TOPIC_KEY)
"""The keys of the message store and its limits that the broker's information shows."""
_FSYNC_OPTIONS = {"": False, "fsync=false": False, "fsync=true": True}


def temporary_place() -> Path:
    """Return the folder for temporary databases, which is on a disk: /tmp is often in memory."""
    named = os.environ.get("TMPDIR")
    if named:
        return Path(named)
    disk = Path("/var/tmp")
    return disk if os.access(disk, os.W_OK) else Path(tempfile.gettempdir())


def _most_bytes(place: Place) -> int:
    if place == Place():
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return min(MOST_MEMORY_BYTES, machine // 4)
    if place.temporary_in is None:
        return MOST_DATABASE_BYTES
    try:
        disk = os.statvfs(place.temporary_in)
    except OSError:
        return MOST_DATABASE_BYTES  # The broker's start reports the missing folder.
    # Whole megabytes, at least 1: 0 would be unlimited.
    free = max(1, disk.f_bavail * disk.f_frsize // 2 // megabytes(1)) * megabytes(1)
    return min(MOST_DATABASE_BYTES, free)
