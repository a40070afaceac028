"""From ``metadataStoreUrl`` to a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from broker.stores.memory import MemoryStore
from broker.stores.sqlite import SqliteStore
from broker.stores.store import StoreError

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore

_MEMORY = "memory:"
_SQLITE = "sqlite:///"


def store_for_url(url: str, cache_bytes: int) -> MetadataStore:
    """Return the store a URL names, not yet opened.

    Args:
        url: ``memory:local`` or ``sqlite:///path`` (four slashes for an absolute path).
        cache_bytes: Wire bytes of snapshots that a store on disk may keep in memory.

    Raises:
        StoreError: No such store.
    """
    if url.startswith(_MEMORY):
        return MemoryStore()
    if url.startswith(_SQLITE):
        return SqliteStore(Path(url.removeprefix(_SQLITE)), cache_bytes)
    raise StoreError(f"metadataStoreUrl={url} is no store; use memory:local or sqlite:///path")
