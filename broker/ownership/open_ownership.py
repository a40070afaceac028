"""The choice of an ownership: shared by the brokers of one PostgreSQL database, else sole."""

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
    """Return the ownership of a broker alone with its store.

    Args:
        store: Knows how many bundles a namespace has.
        urls: Returns the broker's addresses.
        pulsar_compatible: A bundle must be looked up before it is served, as recorded.
    """
    return LookedUpOwnership(urls, store) if pulsar_compatible else SoleOwnership(urls)


def is_shared(metadata_store_url: str) -> bool:
    """Return True if several brokers may have this store."""
    return metadata_store_url.startswith(POSTGRESQL_SCHEMES)


def shared_ownership(store: MetadataStore, lease_seconds: float, clock: Clock) -> SharedOwnership:
    """Return the ownership of a broker that may share its store with others.

    Args:
        store: A PostgreSQL store, which is open.
        lease_seconds: How long the others wait for a broker that says nothing.
        clock: For timeouts and delays.
    """
    # The driver is imported only where it is used.
    from broker.ownership.session import BrokerSession
    from broker.ownership.shared import SharedOwnership
    from broker.stores.postgresql.connections import FAILURES
    from broker.stores.postgresql.store import PostgresqlStore

    if not isinstance(store, PostgresqlStore):
        raise TypeError(f"{store!r} is not shared")
    session = BrokerSession(store.connect, FAILURES, lease_seconds, clock, elapsed_seconds)
    return SharedOwnership(store, store.use, session, clock)
