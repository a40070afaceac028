"""Serves WATCH_TOPIC_LIST and WATCH_TOPIC_LIST_CLOSE: who watches what, from request to end.

One watch, as data: ``pattern accepted -> place in the budget -> heap -> names of the namespace,
once -> set of the pattern, once -> answer -> direct memory -> outbound queue``, then ``change of
the store -> set -> updates``. When the peer vanishes, ``cancel_owner`` ends its watches at once.

Source: upstream TopicListService (PIP-145, PIP-442).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import RequestError, illegal_argument, too_large
from broker.patterns.errors import InvalidPatternError
from broker.stores.changes import StoreError
from broker.watches.registry import Watch, WatchRegistry
from broker.watches.rules import WatchRules, accepted_pattern
from broker.watches.sender import SenderContext, WatchSender
from broker.watches.sets.context import FollowingContext
from broker.watches.sets.totals import WatchTotals
from broker.watches.watcher import LatestWatcher, OrderedWatcher, TopicListWatcher
from limiter.clock import clock_sleep
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from proto.commands import error_command

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from broker.listing.estimates import ListingEstimate, ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.patterns.filter import PatternFilter
    from broker.stores.feed import ChangeFeed
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from limiter.memory.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

logger = logging.getLogger(__name__)

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
_CLOSED_EARLY = "Closed watcher before creation was complete"


@dataclass(frozen=True, slots=True)
class WatchContext:
    """What the service works with."""

    store: MetadataStore
    lister: TopicLister
    estimates: ListingEstimates
    pattern_filter: PatternFilter
    memory: ResponseMemory
    clock: Clock


@dataclass(frozen=True, slots=True)
class AskedWatch:
    """One WATCH_TOPIC_LIST that is to be answered.

    Attributes:
        first: It is the first for its id.
    """

    request: pb.CommandWatchTopicList
    watch: Watch
    cnx: ServedConnection
    first: bool


class TopicListService:
    """Every watch of one broker.

    Attributes:
        totals: What happened, for the metrics.
        registry: Who watches what.
    """

    def __init__(self, parts: WatchContext, rules: WatchRules) -> None:
        self._parts = parts
        self._rules = rules
        self.totals = WatchTotals()
        following = FollowingContext(
            parts.store,
            parts.pattern_filter,
            rules.implementation,
            self.totals,
            parts.clock,
            one_by_one=rules.as_shipped,
        )
        self.registry = WatchRegistry(following, rules.max_bytes, self.totals)
        self._senders = SenderContext(
            parts.memory,
            self.totals,
            parts.clock,
            rules.max_frame_bytes,
            private_buffers=rules.private_buffers,
        )
        self._feed: ChangeFeed | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the store's feed from now on."""
        self._feed = self._parts.store.changes()
        self._run(self._read_feed(self._feed))

    def stop(self) -> None:
        """End every watch. Idempotent."""
        for cnx in self.registry.connections:
            self.registry.cancel_owner(cnx)
        if self._feed is not None:
            self._feed.close()
        for task in self._tasks:
            task.cancel()

    async def _read_feed(self, feed: ChangeFeed) -> None:
        dropped = 0
        async for change in feed:
            if feed.dropped > dropped:
                dropped = feed.dropped
                self.registry.missed_some()
            self.registry.push(change)

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("watches go on without a step that failed: %s", error)

    def cancel_owner(self, cnx: ServedConnection) -> None:
        """End the watches of a connection that is gone, in this turn."""
        self.registry.cancel_owner(cnx)

    # -- requests -----------------------------------------------------------------------------

    def ask(
        self, request: pb.CommandWatchTopicList, namespace: NamespaceName, cnx: ServedConnection
    ) -> AskedWatch:
        """Note a WATCH_TOPIC_LIST, in the turn in which it came; ``answer`` does the rest.

        Raises:
            RequestError: It is refused.
        """
        pattern = accepted_pattern(request.topics_pattern, self._rules)
        watch = self.registry.of(cnx).by_id.get(request.watcher_id)
        first = watch is None
        if watch is None:
            watcher = self._watcher(request.watcher_id, namespace, cnx)
            watch = self.registry.add(cnx, namespace, watcher, pattern)
        else:
            watch.asked_again = True
        watch.pending[request.request_id] = None
        return AskedWatch(request, watch, cnx, first)

    async def answer(self, asked: AskedWatch) -> None:
        """Answer one WATCH_TOPIC_LIST, and tell what changes from then on.

        Raises:
            RequestError: It is refused.
        """
        if asked.watch.ended and not _has_failed(asked.watch.created):
            return  # Who closed it meanwhile has answered.
        with _pending(asked.watch, asked.request.request_id):
            await (self._create(asked) if asked.first else self._answer_again(asked))

    def close(self, watcher_id: int, cnx: ServedConnection) -> None:
        """End a watch; one that is being made answers its requests with an error."""
        watch = self.registry.take(cnx, watcher_id)
        if watch is None:
            return
        text = f"java.lang.IllegalStateException: {_CLOSED_EARLY}"
        for request_id, task in watch.pending.items():
            cnx.send(
                error_command(
                    request_id, pb.MetadataError, text if self._rules.as_shipped else _CLOSED_EARLY
                )
            )
            if task is not None:
                task.cancel()

    # -- a new watch --------------------------------------------------------------------------

    async def _create(self, asked: AskedWatch) -> None:
        watch = asked.watch
        try:
            await self._find_set(watch, asked.cnx)
            await self._answer_first(asked.request, watch)
        except BaseException as error:
            self.registry.forget(asked.cnx, watch)
            _settle(watch.created, error)
            raise
        _settle(watch.created, None)

    def _watcher(
        self, watcher_id: int, namespace: NamespaceName, cnx: ServedConnection
    ) -> TopicListWatcher:
        backoff = self.registry.of(cnx).backoff
        sender = WatchSender(self._senders, cnx, backoff, watcher_id, str(namespace))
        most_bytes = self._rules.max_update_bytes
        if not self._rules.as_shipped:
            return LatestWatcher(sender, self.totals, most_bytes)
        list_again = partial(self._list, namespace, cnx, sender)
        return OrderedWatcher(sender, self.totals, most_bytes, lambda: self._run(list_again()))

    async def _find_set(self, watch: Watch, cnx: ServedConnection) -> None:
        """List what the watch's pattern keeps, unless somebody watches it already."""
        namespace, sender = watch.namespace, watch.watcher.sender
        try:
            if self._rules.as_shipped or namespace.sets.get(watch.pattern) is None:
                await self._list(namespace.namespace, cnx, sender)
            while True:
                watched = await namespace.watched_set(watch.pattern)
                # Who watched it may have left since: then it is followed no more.
                if namespace.sets.get(watch.pattern) is watched:
                    break
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        except InvalidPatternError as error:
            raise RequestError(pb.InvalidTopicName, str(error)) from None
        watch.watcher.watch(watched)
        self.registry.check_room()

    async def _list(
        self, namespace: NamespaceName, cnx: ServedConnection, sender: WatchSender
    ) -> None:
        """List a namespace under the heap limit, however often that has to be asked for."""
        while not sender.closed:
            estimate = self._parts.estimates.of(namespace, PERSISTENT)
            try:
                await self._list_once(namespace, cnx, estimate)
            except PermitAcquireError:
                self.totals.retries += 1
                await clock_sleep(self._parts.clock, sender.backoff.next())
            except PermitTooLargeError as error:
                raise self._too_large(error, "heap estimate", LimitType.HEAP_MEMORY) from None
            except StoreError as error:
                raise RequestError(pb.MetadataError, str(error)) from None
            else:
                sender.backoff.reset()
                return
            finally:
                estimate.failed()

    async def _list_once(
        self, namespace: NamespaceName, cnx: ServedConnection, estimate: ListingEstimate
    ) -> None:
        reserved = await estimate.size()
        key = (namespace, PERSISTENT, "watch")
        async with self._parts.memory.heap(key, reserved, cnx, str(namespace)) as heap:
            listing = await self._parts.lister.list_topics(namespace, PERSISTENT)
            await heap.resize(estimate.actual(listing))
            if not self._rules.as_shipped:
                watched = self.registry.namespace(namespace)
                if not watched.is_read:
                    self.registry.check_room(listing.estimated_bytes)
                await watched.read()

    async def _answer_first(self, request: pb.CommandWatchTopicList, watch: Watch) -> None:
        if self._rules.as_shipped and watch.asked_again:
            # As recorded: the second request has emptied the set when the first is answered.
            await watch.watcher.answer_with_nothing(request.request_id)
            return
        await self._answer(request, watch)

    async def _answer_again(self, asked: AskedWatch) -> None:
        """Answer a request for an id that is there with the set as it is, listed anew."""
        watch = asked.watch
        await asyncio.shield(watch.created)
        if self._rules.as_shipped:
            await self._list(watch.namespace.namespace, asked.cnx, watch.watcher.sender)
        await self._answer(asked.request, watch)

    async def _answer(self, request: pb.CommandWatchTopicList, watch: Watch) -> None:
        known_hash = request.topics_hash if request.HasField("topics_hash") else None
        try:
            await watch.watcher.answer(request.request_id, known_hash)
        except PermitTooLargeError as error:
            raise self._too_large(error, "answer", LimitType.DIRECT_MEMORY) from None

    # -- refusals -----------------------------------------------------------------------------

    def _too_large(
        self, error: PermitTooLargeError, what: str, limit_type: LimitType
    ) -> RequestError:
        if self._rules.as_shipped:
            return illegal_argument(error)
        return too_large(error, what, limit_type)


@contextmanager
def _pending(watch: Watch, request_id: int) -> Iterator[None]:
    """Note a request that waits for its watch, so that a close can answer it."""
    watch.pending[request_id] = asyncio.current_task()
    try:
        yield
    finally:
        watch.pending.pop(request_id, None)


def _has_failed(created: asyncio.Future[None]) -> bool:
    return created.done() and not created.cancelled() and created.exception() is not None


def _settle(created: asyncio.Future[None], error: BaseException | None) -> None:
    """Tell who waits for a watch's creation how it went."""
    if created.done():
        return
    if error is None:
        created.set_result(None)
    elif isinstance(error, asyncio.CancelledError):
        created.cancel()
    else:
        created.set_exception(error)
        created.exception()  # Mostly nobody waits for it.
