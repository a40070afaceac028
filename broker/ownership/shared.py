"""Ownership of bundles among several brokers with a common PostgreSQL database."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.bundles import ALL_HASHES, BundleRange
from broker.ownership import tables
from broker.ownership.handing_over import hand_over, have_forgotten, heir_at, urls_of_topic
from broker.ownership.ownership import (
    Bundle,
    NotServedError,
    OwnedBundles,
    Owner,
    bundle_of_topic,
)
from broker.ownership.tables import Registration
from broker.stores.changes import StoreError
from broker.stores.name_locks import NameLocks, to_its_end
from limiter.clock import clock_sleep
from limiter.single_flight import SingleFlight
from limiter.tasks import BackgroundTasks
from proto.names import InvalidNameError, NamespaceName
from server.configuration.addresses import ServerUrls
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.ownership.session import BrokerSession
    from broker.stores.postgresql.connections import Connection
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from proto.names import TopicName

    Callback = Callable[[Bundle], Awaitable[object]]

logger = logging.getLogger(__name__)

ATTEMPTS = 3
"""Attempts to find or become an owner, in a race with peers."""
RELEASE_SECONDS = 10.0
"""Longest time for an owner to release a bundle."""
LOOK_SECONDS = 0.1
"""Seconds between checks of a release, each with a repeated notification."""
AWAY_SECONDS = 10.0
"""Longest wait of a lookup for an absent broker that has the messages, perhaps restarting. A
client's lookup has 30 s."""
_LEAVING = "this broker is being shut down: ask another one"


class SharedOwnership:
    """One broker's ownership of bundles, which several brokers divide. See Ownership.

    Args:
        store: Knows how many bundles a namespace has.
        use: Borrows a connection to the database, or raises StoreError.
        session: The broker's lease.
        clock: For delays.

    Attributes:
        away_seconds: How long a lookup waits for an absent broker with the messages.
    """

    alone = False
    away_seconds = AWAY_SECONDS

    def __init__(
        self,
        store: MetadataStore,
        use: Callable[[], AbstractAsyncContextManager[Connection]],
        session: BrokerSession,
        clock: Clock,
    ) -> None:
        self._store = store
        self._use = use
        self._session = session
        self._clock = clock
        self._registration: Registration
        self._owned = OwnedBundles()
        self._locks: NameLocks[Bundle] = NameLocks()
        self._lookups: SingleFlight[Owner] = SingleFlight(finishes=True)
        self._when_lost: list[Callback] = []
        self._when_moved: list[Callback] = []
        self._tasks = BackgroundTasks(_told_failure)
        self._forgetting = asyncio.Lock()
        self._deleted: NameLocks[NamespaceName] = NameLocks()
        self._leaving = False
        self.moved_total = 0
        session.on_over = self._lost_all
        session.on_asked = self._asked

    @property
    def sessions_ended(self) -> int:
        """Number of this broker's leases that expired or that another broker ended."""
        return self._session.ended_total

    @property
    def owned(self) -> int:
        """Number of bundles that this broker owns."""
        return len(self._owned)

    async def open(self, urls: ServerUrls, store: str) -> None:
        """Make this broker known to other brokers; from now on it can own bundles.

        Args:
            urls: The broker's addresses.
            store: Identity of the broker's open store of messages.

        Raises:
            StoreError: The registration failed.
        """
        self._registration = Registration(urls, store)
        self._session.open(self._registration)
        await self._session.ready()

    async def close(self) -> None:
        """Release all bundles; called once their topics are closed; may be called repeatedly."""
        self._leaving = True
        self._owned.take_all()
        await self._session.close()
        self._tasks.cancel()
        await self._tasks.finished()

    async def hand_over(self) -> Callable[[TopicName], ServerUrls]:
        """Release all bundles at shutdown, and offer the bundles to other brokers.

        Call after the last publish. Bundles with messages on the broker's disk wait for a restart.

        Returns:
            A function from a topic to its new owner's addresses, NO_URLS without an owner.
        """
        bundles, owners = list(self._owned), dict[Bundle, ServerUrls]()
        await self.close()
        if tables.is_free(self._registration.store):
            try:
                owners = await hand_over(self._use, bundles, self._clock)
            except StoreError as error:
                logger.warning("the bundles of this broker are not handed over: %s", error)
        return urls_of_topic(owners)

    # -- owners -------------------------------------------------------------------------------

    def owns(self, topic: TopicName) -> bool:
        """Return True if this broker owns a topic's bundle under a valid lease."""
        return self._session.notice() and self._owned.holds(topic)

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Return True: the shared store knows the topics of all bundles."""
        return True

    def was_looked_up(self, namespace: NamespaceName) -> bool:
        """Return True if this broker owns a bundle of a namespace."""
        return bool(self._owned.within(namespace))

    def notice(self) -> None:
        """Release all bundles if the broker's lease has expired."""
        self._session.notice()

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Return the owner of a topic's bundle; if it has none, choose one. See Ownership."""
        if self.owns(topic):
            return self._here()
        policies = await self._store.policies(topic.namespace)
        if policies is None:
            raise RequestError(pb.TopicNotFound, "Namespace not found")
        bundle = bundle_of_topic(topic, policies.bundles)
        return await self._looked_up(bundle, policies.bundles, authoritative=authoritative)

    async def _looked_up(self, bundle: Bundle, count: int, *, authoritative: bool) -> Owner:
        """Return a bundle's owner; concurrent callers share one lookup, which runs to its end."""
        work = partial(self._acquire, bundle, count, authoritative=authoritative)
        return await self._lookups.join((bundle, count, authoritative), work)

    async def _acquire(self, bundle: Bundle, count: int, *, authoritative: bool) -> Owner:
        give_up = self._clock.now() + self.away_seconds
        for _ in range(ATTEMPTS):
            if self._leaving:
                raise NotServedError(_LEAVING)
            me = await self._session.ready()
            async with self._locks.of(bundle):
                found = await self._found(bundle, count, me, give_up, authoritative=authoritative)
            if found is not None:
                return found
        raise NotServedError(f"the owner of bundle {bundle} is being decided: look it up again")

    async def _found(
        self, bundle: Bundle, count: int, me: str, give_up: float, *, authoritative: bool
    ) -> Owner | None:
        """Return a bundle's owner or candidate; None if the caller must ask again.

        Another broker may have become the owner meanwhile.
        """
        async with self._use() as connection:
            row = await tables.owner_of(connection, bundle)
        if row is not None and row.owner != me:
            return Owner(row.urls, here=False)
        if row is not None and row.hashes != bundle.hashes:
            # An earlier namespace of the same name had different bundles.
            await self._let_go(Bundle(bundle.namespace, row.hashes))
            return None
        if row is not None:
            return await self._settled(bundle, count, me, row.store)
        chosen = await self._candidate(bundle, give_up)
        if chosen[0] != me and not (authoritative and await self._may_claim(bundle)):
            return chosen[1]
        return await self._claimed(bundle, count, me)

    async def _candidate(self, bundle: Bundle, give_up: float) -> tuple[str, Owner]:
        """Return the broker that should become the owner of a bundle.

        If the broker that has the bundle's messages is not running, wait for its return.
        """
        while not self._leaving:
            async with self._use() as connection:
                chosen = await tables.candidate(connection, bundle)
            if chosen is not None:
                return chosen
            if self._clock.now() >= give_up:
                raise NotServedError(
                    f"the broker that has the messages of bundle {bundle} is not running: "
                    "they are in its database"
                )
            await clock_sleep(self._clock, LOOK_SECONDS)
        raise NotServedError(_LEAVING)

    async def _may_claim(self, bundle: Bundle) -> bool:
        async with self._use() as connection:
            return await tables.fits(connection, bundle, self._registration.store)

    async def _claimed(self, bundle: Bundle, count: int, me: str) -> Owner | None:
        async with self._use() as connection:
            before = await tables.claim(connection, bundle, me)
        return None if before is None else await self._settled(bundle, count, me, before)

    async def _settled(self, bundle: Bundle, count: int, me: str, before: str) -> Owner | None:
        """Own a claimed bundle; if another store has its messages, first delete old ones here."""
        mine = self._registration.store
        if before != mine:
            if before != tables.DELETED:
                self.moved_total += 1
                logger.warning(
                    "bundle %s was served by another broker, whose messages do not move: "
                    "its topics are empty now",
                    bundle,
                )
            try:
                await self._moved(bundle)
            except BaseException:
                # The callbacks may have half finished: the next owner begins anew.
                async with self._use() as connection:
                    await tables.release(connection, bundle, me)
                raise
            async with self._use() as connection:
                await tables.set_store(connection, bundle, me, mine)
        return self._own(bundle, count, me)

    async def _moved(self, bundle: Bundle) -> None:
        await asyncio.gather(*[callback(bundle) for callback in self._when_moved])

    def _own(self, bundle: Bundle, count: int, me: str) -> Owner | None:
        if not self._session.notice() or self._session.id != me:
            return None  # The session of the claim is over.
        if bundle not in self._owned:
            self._owned.add(bundle, count)
            logger.info("this broker owns bundle %s", bundle)
        return self._here()

    def _here(self) -> Owner:
        return Owner(self._registration.urls, here=True)

    # -- release ------------------------------------------------------------------------------

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Make a bundle's owner release it. See Ownership."""
        if to is not None:
            await to_its_end(self._give(bundle, to))
            return
        me = await self._session.ready()
        give_up = self._clock.now() + RELEASE_SECONDS
        while True:
            async with self._use() as connection:
                row = await tables.owner_of(connection, bundle)
                if row is None:
                    return
                # An earlier namespace of the same name may have had different bundles.
                theirs = Bundle(bundle.namespace, row.hashes)
                if row.owner != me:
                    await tables.ask_to_release(connection, theirs)
            if row.owner == me:
                await to_its_end(self._release(theirs))
                return
            if self._clock.now() >= give_up:
                raise NotServedError(f"{row.urls.any_service} does not release bundle {bundle}")
            await clock_sleep(self._clock, LOOK_SECONDS)

    async def _release(self, bundle: Bundle) -> None:
        async with self._locks.of(bundle):
            await self._let_go(bundle)

    async def _give(self, bundle: Bundle, to: str) -> None:
        """Transfer a bundle to the broker at an address; lookups here wait meanwhile."""
        async with self._locks.of(bundle):
            async with self._use() as connection:
                heir = await heir_at(connection, bundle, to)
            if bundle not in self._owned:
                raise NotServedError(f"bundle {bundle} is not owned here")
            await self._let_go(bundle)
            if heir != self._session.id:
                await hand_over(self._use, [bundle], self._clock, [heir])

    async def _let_go(self, bundle: Bundle) -> None:
        me = self._session.id
        if self._owned.discard(bundle):
            logger.info("this broker lets go of bundle %s", bundle)
            await asyncio.gather(*[callback(bundle) for callback in self._when_lost])
        async with self._use() as connection:
            await tables.release(connection, bundle, me)

    def _asked(self, text: str) -> None:
        """Act on a notification of another broker, which makes one of three requests.

        The other broker asks this one to release a bundle, to own a bundle, or to release the
        bundles of a deleted namespace.
        """
        name, *numbers = text.split(" ")
        try:
            namespace = NamespaceName.parse(name)
            if len(numbers) == 1:
                # The notification is repeated until all brokers have forgotten.
                if numbers != [self._session.id] and namespace not in self._deleted:
                    self._tasks.start(self._forget(namespace))
                return
            low, high, *heirs = numbers
            bundle = Bundle(namespace, BundleRange(int(low), int(high)))
        except (ValueError, InvalidNameError):
            return
        if heirs:
            if heirs == [self._session.id] and not self._leaving:
                self._tasks.start(self._take_over(bundle))
        elif bundle in self._owned and bundle not in self._locks:
            self._tasks.start(self._release(bundle))

    async def _take_over(self, bundle: Bundle) -> None:
        """Become the owner of a bundle that another broker offered, if it still has no owner."""
        policies = await self._store.policies(bundle.namespace)
        if policies is not None:
            with suppress(NotServedError):
                await self._looked_up(bundle, policies.bundles, authoritative=True)

    def _lost_all(self) -> None:
        """Call the callbacks for all owned bundles, as they are lost; their work ends in tasks."""
        for bundle in self._owned.take_all():
            for callback in self._when_lost:
                self._tasks.start(_waited(callback(bundle)))

    async def namespaces_deleted(self, namespaces: Sequence[NamespaceName]) -> None:
        """Make all brokers release the bundles of deleted namespaces. See Ownership."""
        for namespace in namespaces:
            if await self._store.policies(namespace) is None:  # Otherwise recreated meanwhile.
                await self._let_go_within(namespace)
        await have_forgotten(self._use, namespaces, self._session.id, self._clock)

    async def _let_go_within(self, namespace: NamespaceName) -> None:
        for bundle in self._owned.within(namespace):
            await to_its_end(self._release(bundle))

    async def _forget(self, namespace: NamespaceName) -> None:
        """Release the bundles of a namespace that another broker deleted; delete its messages."""
        async with self._deleted.of(namespace):
            if await self._store.policies(namespace) is not None:
                return  # Recreated meanwhile, after all brokers had forgotten the deleted one.
            await self._let_go_within(namespace)
            async with self._forgetting:  # Many may be deleted together.
                if await self._store.policies(namespace) is None:
                    await self._moved(Bundle(namespace, ALL_HASHES))

    def on_lost(self, callback: Callback) -> None:
        """Register a callback for bundles that this broker stops owning. See Ownership."""
        self._when_lost.append(callback)

    def on_moved(self, callback: Callback) -> None:
        """Register a callback for bundles that another broker served meanwhile. See Ownership."""
        self._when_moved.append(callback)

    async def brokers(self) -> Sequence[str]:
        """Return the web address of each live broker as ``host:port``."""
        await self._session.ready()
        async with self._use() as connection:
            return await tables.live_brokers(connection)


async def _waited(work: Awaitable[object]) -> object:
    return await work


def _told_failure(error: BaseException) -> None:
    logger.warning("a bundle's topics were not closed as they should: %s", error)
