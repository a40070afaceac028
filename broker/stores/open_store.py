"""Creation of the store of topics that ``metadataStoreUrl`` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.stores.sqlite.store import SqliteStore
from broker.stores.store_url import (
    EXPECTED_STORES,
    MEMORY_SCHEME,
    POSTGRESQL_SCHEMES,
    SQLITE_SCHEME,
    without_password,
)

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock


def store_for_url(url: str, cache_bytes: int, clock: Clock | None = None) -> MetadataStore:
    """Return the store that a URL names, not yet opened.

    Args:
        url: ``memory:local``, ``sqlite:///path`` (four slashes for an absolute path), or
            ``postgresql://user@host:port/database``.
        cache_bytes: Limit for cached snapshots of a database store.
        clock: For timeouts and delays; None for the event loop's.

    Raises:
        StoreError: The URL names no store.
    """
    if url.startswith(MEMORY_SCHEME):
        return MemoryStore()
    if url.startswith(SQLITE_SCHEME):
        return SqliteStore(Path(url.removeprefix(SQLITE_SCHEME)), cache_bytes)
    if url.startswith(POSTGRESQL_SCHEMES):
        return _postgresql(url, cache_bytes, clock)
    raise StoreError(f"metadataStoreUrl={without_password(url)} is no store; use {EXPECTED_STORES}")


def _postgresql(url: str, cache_bytes: int, clock: Clock | None) -> MetadataStore:
    # The driver costs 60 ms and 10 MB: import only on use.
    try:
        from broker.stores.postgresql.store import PostgresqlStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(
            f"metadataStoreUrl={without_password(url)} needs the package asyncpg: "
            'pip install "pulsar-floodgate[postgresql]"'
        ) from error

    return PostgresqlStore(url, cache_bytes, clock)
