"""Creation of a broker's ownership of bundles: shared through PostgreSQL, or sole.

With sole ownership, this broker owns all bundles.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.ownership.ownership import Bundle, OwnedBundles, Owner, bundle_of_topic
from broker.stores.store_url import POSTGRESQL_SCHEMES
from limiter.clock import elapsed_seconds
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from broker.ownership.shared import SharedOwnership
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from proto.names import NamespaceName, TopicName
    from server.configuration.addresses import ServerUrls


class SoleOwnership:
    """The ownership of a broker that shares its store with no other broker. See Ownership."""

    alone = True

    def __init__(self, urls: Callable[[], ServerUrls]) -> None:
        self._urls = urls
        # Bound: the existing namespaces.
        self._looked_up: set[NamespaceName] = set()
        self._when_lost: list[Callable[[Bundle], Awaitable[object]]] = []

    def owns(self, topic: TopicName) -> bool:
        """Return True: this broker serves all topics."""
        return True

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Return True: this broker serves all bundles."""
        return True

    def notice(self) -> None:
        """Do nothing: no lease can expire, because no other broker serves topics."""

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Return this broker, as the owner of all topics."""
        self._looked_up.add(topic.namespace)
        return Owner(self._urls(), here=True)

    def was_looked_up(self, namespace: NamespaceName) -> bool:
        """Return True if a topic of a namespace was looked up since the broker started."""
        return namespace in self._looked_up

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Close the topics of a bundle; later lookups load them again."""
        await asyncio.gather(*[callback(bundle) for callback in self._when_lost])

    async def namespaces_deleted(self, namespaces: Sequence[NamespaceName]) -> None:
        """Forget that topics of the deleted namespaces were looked up."""
        self._looked_up.difference_update(namespaces)

    def on_lost(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Register a callback, called with each released bundle, that closes its topics."""
        self._when_lost.append(callback)

    def on_moved(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Do nothing: no other broker can serve a bundle."""

    async def brokers(self) -> Sequence[str]:
        """Return a list of this broker's web address as ``host:port``, the only one."""
        return [self._urls().web_address]


class LookedUpOwnership(SoleOwnership):
    """Sole ownership in profile pulsar: a bundle is owned from its first lookup to its unload.

    Args:
        urls: Returns the broker's addresses.
        store: Knows how many bundles a namespace has.
    """

    def __init__(self, urls: Callable[[], ServerUrls], store: MetadataStore) -> None:
        super().__init__(urls)
        self._store = store
        self._owned = OwnedBundles()

    def owns(self, topic: TopicName) -> bool:
        """Return True if any topic of this topic's bundle was looked up."""
        return self._owned.holds(topic)

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Return True if any topic of the bundle was looked up."""
        return bundle in self._owned

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Make this broker the owner of a topic's bundle, and return its addresses."""
        if not self._owned.holds(topic):
            policies = await self._store.policies(topic.namespace)
            if policies is None:
                raise RequestError(pb.TopicNotFound, "Namespace not found")
            self._owned.add(bundle_of_topic(topic, policies.bundles), policies.bundles)
        return await super().acquire(topic, authoritative=authoritative)

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Release a bundle until one of its topics is looked up again."""
        self._owned.discard(bundle)
        await super().release(bundle)


def sole_ownership(
    store: MetadataStore, urls: Callable[[], ServerUrls], *, pulsar_compatible: bool
) -> SoleOwnership:
    """Create the ownership of a broker that shares its store with no other broker.

    Args:
        store: Knows how many bundles a namespace has.
        urls: Returns the broker's addresses.
        pulsar_compatible: A bundle is served only after a lookup, as recorded.
    """
    return LookedUpOwnership(urls, store) if pulsar_compatible else SoleOwnership(urls)


def is_shared(metadata_store_url: str) -> bool:
    """Return True if several brokers can share the store at a URL."""
    return metadata_store_url.startswith(POSTGRESQL_SCHEMES)


def shared_ownership(store: MetadataStore, lease_seconds: float, clock: Clock) -> SharedOwnership:
    """Create the ownership of a broker whose PostgreSQL store may serve further brokers.

    Args:
        store: An open PostgreSQL store.
        lease_seconds: How long other brokers wait for one that does not renew its lease.
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
