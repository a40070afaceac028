"""Ownership of a broker that shares its topics with others, in one PostgreSQL database."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
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
from proto.names import InvalidNameError, NamespaceName
from server.configuration.addresses import ServerUrls
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.ownership.session import BrokerSession
    from broker.stores.postgresql.driver import Connection
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from proto.names import TopicName

    Callback = Callable[[Bundle], Awaitable[object]]

logger = logging.getLogger(__name__)

ATTEMPTS = 3
"""Attempts to find or make an owner while others do the same."""
RELEASE_SECONDS = 10.0
"""The time that another broker may take to let a bundle go."""
LOOK_SECONDS = 0.1
"""Interval at which it is asked whether it has, and told again."""
AWAY_SECONDS = 10.0
"""So long a lookup waits for a broker that is away and has the messages: one that is restarted
comes back. A client's lookup has 30 s."""
_LEAVING = "this broker is being shut down: ask another one"


class SharedOwnership:
    """The ownership of one of several brokers. See Ownership.

    Args:
        store: Knows how many bundles a namespace has.
        use: Takes a connection to the database for a while, or raises StoreError.
        session: The broker's lease.
        clock: For delays.

    Attributes:
        away_seconds: How long a lookup waits for a broker that is away and has the messages.
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
        self._when_lost: list[Callback] = []
        self._when_moved: list[Callback] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._forgetting = asyncio.Lock()
        self._leaving = False
        self.moved_total = 0
        session.on_over = self._lost_all
        session.on_asked = self._asked

    @property
    def sessions_ended(self) -> int:
        """Leases that were lost."""
        return self._session.ended_total

    @property
    def owned(self) -> int:
        """Bundles that this broker owns."""
        return len(self._owned)

    async def open(self, urls: ServerUrls, store: str) -> None:
        """Let the others know this broker, and own bundles from now on.

        Args:
            urls: Its addresses.
            store: Identity of its store of messages, which is open.

        Raises:
            StoreError: They cannot be told.
        """
        self._registration = Registration(urls, store)
        self._session.open(self._registration)
        await self._session.ready()

    async def close(self) -> None:
        """Let go of all bundles; the topics have been closed before. Idempotent."""
        self._leaving = True
        self._owned.take_all()
        await self._session.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def hand_over(self) -> Callable[[TopicName], ServerUrls]:
        """Let go of all bundles, for this broker ends, and have others own what they may.

        Nothing may be published any more. Bundles wait for us if our database outlives us.

        Returns:
            What names the new owner of a topic; nothing for none.
        """
        bundles, owners = list(self._owned), dict[Bundle, ServerUrls]()
        await self.close()
        if tables.is_free(self._registration.store):
            try:
                owners = await hand_over(self._use, bundles, self._clock)
            except StoreError as error:
                logger.warning("the bundles of this broker are not handed over: %s", error)
        return urls_of_topic(owners)

    # -- who owns what ------------------------------------------------------------------------

    def owns(self, topic: TopicName) -> bool:
        """Return True if this broker serves a topic, and its lease is not over."""
        return self._session.notice() and self._owned.holds(topic)

    def owns_bundle(self, bundle: Bundle) -> bool:
        """Return True: the store knows the topics of all."""
        return True

    def was_looked_up(self, namespace: NamespaceName) -> bool:
        """Tell whether this broker serves a bundle of a namespace."""
        return bool(self._owned.within(namespace))

    def notice(self) -> None:
        """Give up everything if the lease is over."""
        self._session.notice()

    async def acquire(self, topic: TopicName, *, authoritative: bool = False) -> Owner:
        """Return the broker that serves a topic, which may become this one now. See Ownership."""
        if self.owns(topic):
            return self._here()
        policies = await self._store.policies(topic.namespace)
        if policies is None:
            raise RequestError(pb.TopicNotFound, "Namespace not found")
        bundle = bundle_of_topic(topic, policies.bundles)
        work = self._acquire(bundle, policies.bundles, authoritative=authoritative)
        return await to_its_end(work)

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
        """Return the owner; None if others were faster, and it is to be looked up again."""
        async with self._use() as connection:
            row = await tables.owner_of(connection, bundle)
        if row is not None and row.owner != me:
            return Owner(row.urls, here=False)
        if row is not None and row.hashes != bundle.hashes:
            # A namespace of this name had other bundles.
            await self._let_go(Bundle(bundle.namespace, row.hashes))
            return None
        if row is not None:
            return self._own(bundle, count, me)
        chosen = await self._candidate(bundle, give_up)
        if chosen[0] != me and not (authoritative and await self._may_claim(bundle)):
            return chosen[1]
        return await self._claimed(bundle, count, me)

    async def _candidate(self, bundle: Bundle, give_up: float) -> tuple[str, Owner]:
        """Return who shall own a bundle, and wait for who has its messages and may come back."""
        while not self._leaving:
            async with self._use() as connection:
                chosen = await tables.candidate(connection, bundle)
            if chosen is not None:
                return chosen
            if self._clock.now() >= give_up:
                raise NotServedError(
                    f"the broker that has the messages of bundle {bundle} is away: "
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
        if before is None:
            return None
        if before not in ("", self._registration.store):
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
                # Half of it may be there: whoever is asked next begins anew.
                async with self._use() as connection:
                    await tables.release(connection, bundle, me, before)
                raise
        return self._own(bundle, count, me)

    async def _moved(self, bundle: Bundle) -> None:
        await asyncio.gather(*[callback(bundle) for callback in self._when_moved])

    def _own(self, bundle: Bundle, count: int, me: str) -> Owner | None:
        if not self._session.notice() or self._session.id != me:
            return None  # The session in which it was claimed is over.
        if bundle not in self._owned:
            self._owned.add(bundle, count)
            logger.info("this broker owns bundle %s", bundle)
        return self._here()

    def _here(self) -> Owner:
        return Owner(self._registration.urls, here=True)

    # -- letting go ---------------------------------------------------------------------------

    async def release(self, bundle: Bundle, to: str | None = None) -> None:
        """Have a bundle's owner let it go. See Ownership."""
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
                # A namespace of this name may have had other bundles.
                theirs = Bundle(bundle.namespace, row.hashes)
                if row.owner != me:
                    await tables.ask_to_release(connection, theirs)
            if row.owner == me:
                await to_its_end(self._release(theirs))
                return
            if self._clock.now() >= give_up:
                raise NotServedError(f"{row.urls.any_service} does not let go of bundle {bundle}")
            await clock_sleep(self._clock, LOOK_SECONDS)

    async def _release(self, bundle: Bundle) -> None:
        async with self._locks.of(bundle):
            await self._let_go(bundle)

    async def _give(self, bundle: Bundle, to: str) -> None:
        """Let a bundle go, and have the broker at an address own it before it is looked up here."""
        async with self._locks.of(bundle):
            async with self._use() as connection:
                heir = await heir_at(connection, bundle, to)
            if bundle not in self._owned:
                raise NotServedError(f"bundle {bundle} is not owned here")
            await self._let_go(bundle)
            if heir != self._session.id:
                await hand_over(self._use, [bundle], self._clock, [heir])

    async def _let_go(self, bundle: Bundle) -> None:
        """Have a bundle's topics closed, then make it nobody's."""
        me = self._session.id
        if self._owned.discard(bundle):
            logger.info("this broker lets go of bundle %s", bundle)
            await asyncio.gather(*[callback(bundle) for callback in self._when_lost])
        async with self._use() as connection:
            await tables.release(connection, bundle, me)

    def _asked(self, text: str) -> None:
        """Do what another broker asks for: let go of a bundle, own one, or forget a namespace."""
        name, *numbers = text.split(" ")
        try:
            namespace = NamespaceName.parse(name)
            if len(numbers) == 1:
                if numbers != [self._session.id]:
                    self._run(self._forget(namespace))
                return
            low, high, *heirs = numbers
            bundle = Bundle(namespace, BundleRange(int(low), int(high)))
        except (ValueError, InvalidNameError):
            return
        if heirs:
            if heirs == [self._session.id] and not self._leaving:
                self._run(self._take_over(bundle))
        elif bundle in self._owned and bundle not in self._locks:
            self._run(self._release(bundle))

    async def _take_over(self, bundle: Bundle) -> None:
        """Own a bundle that was offered, unless somebody was faster."""
        policies = await self._store.policies(bundle.namespace)
        if policies is not None:
            with suppress(NotServedError):
                await self._acquire(bundle, policies.bundles, authoritative=True)

    def _lost_all(self) -> None:
        """End what must not be done any more, in this turn; the rest ends as soon as it can."""
        for bundle in self._owned.take_all():
            for callback in self._when_lost:
                self._run(_waited(callback(bundle)))

    def _run(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.warning("a bundle's topics were not closed as they should: %s", task.exception())

    async def namespaces_deleted(self, namespaces: Sequence[NamespaceName]) -> None:
        """Have all brokers forget namespaces that are no more. See Ownership."""
        for namespace in namespaces:
            if await self._store.policies(namespace) is None:  # Else it was made again meanwhile.
                await self._let_go_within(namespace)
        await have_forgotten(self._use, namespaces, self._session.id, self._clock)

    async def _let_go_within(self, namespace: NamespaceName) -> None:
        for bundle in self._owned.within(namespace):
            await to_its_end(self._release(bundle))

    async def _forget(self, namespace: NamespaceName) -> None:
        """Let go of a namespace that another broker deleted, and delete what is stored of it."""
        if await self._store.policies(namespace) is not None:
            return  # It was made again meanwhile, once all had forgotten the one before.
        await self._let_go_within(namespace)
        async with self._forgetting:  # Many may be deleted together.
            if await self._store.policies(namespace) is None:
                await self._moved(Bundle(namespace, ALL_HASHES))

    def on_lost(self, callback: Callback) -> None:
        """Call back when a bundle is not owned any more. See Ownership."""
        self._when_lost.append(callback)

    def on_moved(self, callback: Callback) -> None:
        """Call back before a bundle is owned that another broker served meanwhile."""
        self._when_moved.append(callback)

    async def brokers(self) -> Sequence[str]:
        """Return host and web port of each broker that lives."""
        await self._session.ready()
        async with self._use() as connection:
            return await tables.live_brokers(connection)


async def _waited(work: Awaitable[object]) -> object:
    return await work
