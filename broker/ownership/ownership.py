"""The interface of ownership: which broker serves a topic.

Brokers divide topics among each other by bundles (broker.bundles). A topic is served by the broker
that owns its bundle, and by nobody else.
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
    """A bundle of one namespace."""

    namespace: NamespaceName
    hashes: BundleRange

    def __str__(self) -> str:
        return f"{self.namespace}/{self.hashes}"

    def holds(self, topic: TopicName) -> bool:
        """Return True if a topic lies in this bundle."""
        return topic.namespace == self.namespace and self.hashes.holds(str(topic).encode())


class Owner(NamedTuple):
    """The broker that serves a bundle.

    Attributes:
        urls: Its addresses.
        here: It is this broker.
        decided: False: it shall become the owner, and does when it is asked.
    """

    urls: ServerUrls
    here: bool
    decided: bool = True


class NotServedError(RequestError):
    """Nobody serves a topic at this moment."""

    def __init__(self, text: str) -> None:
        super().__init__(pb.ServiceNotReady, text)


class Ownership(Protocol):
    """The bundles that this broker owns, and who owns the others.

    Attributes:
        alone: No other broker can own any.
    """

    alone: bool

    def owns(self, topic: TopicName) -> bool:
        """Tell whether this broker serves a topic, at this moment."""

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Tell whether a bundle's topics are served, here or by another broker."""

    def notice(self) -> None:
        """Give up everything at once if it is too late to serve it, as after a stop."""

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Return the broker that serves a topic, which may become this one now.

        Args:
            topic: A topic, which need not exist; its namespace must.
            authoritative: Another broker has chosen this one.

        Raises:
            NotServedError: Nobody can, for now.
            StoreError: The metadata store failed.
        """

    def was_looked_up(self, namespace: NamespaceName) -> bool:
        """Tell whether a topic of a namespace was, since this broker started."""

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Have a bundle's owner, here or elsewhere, let it go; the next lookup finds a new one.

        Args:
            bundle: The bundle.
            to: Address of the broker that shall own it, if it is owned here.

        Raises:
            NotServedError: Its owner does not let go, or who shall own it cannot.
            StoreError: The metadata store failed.
        """

    async def namespaces_deleted(self, namespaces: Sequence[NamespaceName]) -> None:
        """Have nobody own bundles of namespaces that are no more, and nobody keep their messages.

        Raises:
            StoreError: The metadata store failed.
        """

    def on_lost(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Call back when a bundle is not owned any more.

        What must not be done any more ends within the call; what the callback returns is waited
        for before another broker may own the bundle, if there is time.
        """

    def on_moved(self, callback: Callable[[Bundle], Awaitable[object]]) -> None:
        """Call back before a bundle is owned that another broker served meanwhile."""

    async def brokers(self) -> Sequence[str]:
        """Return host and web port of each broker that lives."""


def bundle_of_topic(topic: TopicName, bundles: int) -> Bundle:
    """Return the bundle of a topic whose namespace has so many."""
    return Bundle(topic.namespace, bundle_of(str(topic).encode(), bundles))


class OwnedBundles:
    """The bundles that a broker owns; a topic is looked up in it without any wait.

    Bound: one a bundle of a namespace that exists.
    """

    def __init__(self) -> None:
        # A bundle is found by where it begins, so by the topic's hash and the number of bundles.
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
        """Return True if the bundle of a topic is owned."""
        counts = self._lows.get(topic.namespace)
        if counts is None:
            return False
        name = str(topic).encode()
        return any(bundle_of(name, count).low in lows for count, lows in counts.items())

    def within(self, namespace: NamespaceName) -> list[Bundle]:
        """Return the bundles of a namespace."""
        counts = self._lows.get(namespace, {})
        return [bundle for bundles in counts.values() for bundle in bundles.values()]

    def add(self, bundle: Bundle, count: int) -> None:
        """Add a bundle of a namespace that has ``count``."""
        self._lows.setdefault(bundle.namespace, {}).setdefault(count, {})[bundle.hashes.low] = (
            bundle
        )

    def discard(self, bundle: Bundle) -> bool:
        """Remove a bundle; false if it was not there."""
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
        """Remove all; return what was there."""
        taken = list(self)
        self._lows.clear()
        return taken
