"""The choice of an ownership: shared by the brokers of a PostgreSQL database, otherwise sole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.ownership.sole import LookedUpOwnership, SoleOwnership
from broker.stores.store_url import POSTGRESQL_SCHEMES
from limiter.clock import elapsed_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.ownership.shared import SharedOwnership
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from server.configuration.addresses import ServerUrls


def sole_ownership(
    store: MetadataStore, urls: Callable[[], ServerUrls], *, pulsar_compatible: bool
) -> SoleOwnership:
    """Return the ownership of a broker with an exclusive store.

    Args:
        store: Knows how many bundles a namespace has.
        urls: Returns the broker's addresses.
        pulsar_compatible: A bundle is served only after a lookup, as recorded.
    """
    return LookedUpOwnership(urls, store) if pulsar_compatible else SoleOwnership(urls)


def is_shared(metadata_store_url: str) -> bool:
    """Return True if several brokers may share this store."""
    return metadata_store_url.startswith(POSTGRESQL_SCHEMES)


def shared_ownership(store: MetadataStore, lease_seconds: float, clock: Clock) -> SharedOwnership:
    """Return the ownership of a broker with a possibly shared store.

    Args:
        store: An open PostgreSQL store.
        lease_seconds: How long peers wait for a silent broker.
        clock: For timeouts and delays.
    """
    # Brokers with another store need no PostgreSQL driver.
    from broker.ownership.session import BrokerSession
    from broker.ownership.shared import SharedOwnership
    from broker.stores.postgresql.connections import FAILURES
    from broker.stores.postgresql.store import PostgresqlStore

    if not isinstance(store, PostgresqlStore):
        raise TypeError(f"{store!r} is not shared")
    session = BrokerSession(store.connect, FAILURES, lease_seconds, clock, elapsed_seconds)
    return SharedOwnership(store, store.use, session, clock)
