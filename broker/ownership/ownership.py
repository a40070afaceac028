"""The interface of ownership: which broker owns each bundle, and so serves its topics.

Brokers divide topics by bundles (broker.bundles). Only the owner of a topic's bundle serves the
topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import proto.PulsarApi_pb2 as pb
from broker.bundles import BundleRange, bundle_of
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from proto.names import NamespaceName, TopicName
    from server.configuration.addresses import ServerUrls


class Bundle(NamedTuple):
    """A bundle: those topics of a namespace whose hashes lie in a range."""

    namespace: NamespaceName
    hashes: BundleRange

    def __str__(self) -> str:
        return f"{self.namespace}/{self.hashes}"

    def holds(self, topic: TopicName) -> bool:
        """Return True if a topic belongs to this bundle."""
        return topic.namespace == self.namespace and self.hashes.holds(str(topic).encode())


class Owner(NamedTuple):
    """The broker that owns a bundle, or a candidate for the ownership.

    Attributes:
        urls: The broker's addresses.
        here: Whether the owner is this broker.
        decided: False for a candidate, before a lookup makes the candidate the owner.
    """

    urls: ServerUrls
    here: bool
    decided: bool = True


class NotServedError(RequestError):
    """No broker serves the topic at the moment."""

    def __init__(self, text: str) -> None:
        super().__init__(pb.ServiceNotReady, text)


class Ownership(Protocol):
    """The interface to the bundles that this broker owns, and to the owners of all bundles.

    Attributes:
        alone: True if no other broker can own bundles.
    """

    alone: bool

    def owns(self, topic: TopicName) -> bool:
        """Return True if this broker serves a topic at the moment."""

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Return True if some broker serves the topics of a bundle."""

    def notice(self) -> None:
        """Release all bundles if this broker's lease has expired.

        For example, because the process was stopped for some time.
        """

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Return the broker that owns a topic's bundle.

        If the bundle has no owner, a broker, possibly this broker, becomes the owner.

        Args:
            topic: A topic, existing or not, of an existing namespace.
            authoritative: Whether another broker has chosen this broker as the owner.

        Raises:
            NotServedError: No broker can serve the topic for now.
            StoreError: The metadata store failed.
        """

    def was_looked_up(self, namespace: NamespaceName) -> bool:
        """Return True if a topic of a namespace was looked up since the broker started."""

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Make a bundle's owner release it; later lookups find a new owner.

        Args:
            bundle: The bundle.
            to: Address of the new owner, if this broker owns the bundle.

        Raises:
            NotServedError: The owner does not release, or the new owner cannot own the bundle.
            StoreError: The metadata store failed.
        """

    async def namespaces_deleted(self, namespaces: Sequence[NamespaceName]) -> None:
        """Make all brokers release deleted namespaces, and delete their stored messages.

        Raises:
            StoreError: The metadata store failed.
        """

    def on_lost(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Register a callback, called with each bundle that this broker stops owning.

        Work forbidden without ownership ends within the call. The returned awaitable is finished,
        time permitting, before another broker may own the bundle.
        """

    def on_moved(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Register a callback, called with a bundle that another broker served in the meantime.

        The callback runs before this broker owns the bundle.
        """

    async def brokers(self) -> Sequence[str]:
        """Return the web address of each live broker as ``host:port``."""


def bundle_of_topic(topic: TopicName, bundles: int) -> Bundle:
    """Return a topic's bundle, given its namespace's number of bundles."""
    return Bundle(topic.namespace, bundle_of(str(topic).encode(), bundles))


class OwnedBundles:
    """The bundles that this broker owns; finding a topic's bundle needs no waiting.

    Bound: an entry for each bundle of existing namespaces.
    """

    def __init__(self) -> None:
        # Keyed by namespace, number of bundles and the bundle's lowest hash.
        self._lows: dict[NamespaceName, dict[int, dict[int, Bundle]]] = {}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Bundle]:
        for counts in self._lows.values():
            for bundles in counts.values():
                yield from bundles.values()

    def __contains__(self, bundle: Bundle) -> bool:
        return any(
            bundle in lows.values() for lows in self._lows.get(bundle.namespace, {}).values()
        )

    def holds(self, topic: TopicName) -> bool:
        """Return True if this broker owns the topic's bundle."""
        counts = self._lows.get(topic.namespace)
        if counts is None:
            return False
        name = str(topic).encode()
        return any(bundle_of(name, count).low in lows for count, lows in counts.items())

    def within(self, namespace: NamespaceName) -> list[Bundle]:
        """Return the bundles of a namespace that this broker owns."""
        counts = self._lows.get(namespace, {})
        return [bundle for bundles in counts.values() for bundle in bundles.values()]

    def add(self, bundle: Bundle, count: int) -> None:
        """Add a bundle of a namespace that is divided into ``count`` bundles."""
        self._lows.setdefault(bundle.namespace, {}).setdefault(count, {})[bundle.hashes.low] = (
            bundle
        )

    def discard(self, bundle: Bundle) -> bool:
        """Remove a bundle; return False if this broker does not own it."""
        counts = self._lows.get(bundle.namespace, {})
        for count, lows in list(counts.items()):
            if lows.get(bundle.hashes.low) == bundle:
                del lows[bundle.hashes.low]
                if not lows:
                    del counts[count]
                if not counts:
                    del self._lows[bundle.namespace]
                return True
        return False

    def take_all(self) -> list[Bundle]:
        """Remove and return all owned bundles."""
        taken = list(self)
        self._lows.clear()
        return taken
