"""Service for clients' topic list watches: WATCH_TOPIC_LIST and WATCH_TOPIC_LIST_CLOSE.

One watch: ``pattern accepted -> place in the budget -> heap permit -> names of the namespace, once
-> set of the pattern, once -> direct memory -> answer -> outbound queue``, then ``change of the
store -> set -> updates``. When the peer vanishes, ``cancel_owner`` ends its watches immediately.

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
from broker.patterns.errors import InvalidPatternError
from broker.stores.changes import StoreError
from broker.watches.registry import NamespaceListings, Watch, WatchRegistry, limit_exceeded
from broker.watches.rules import REFUSED, accepted_pattern
from broker.watches.sender import WatchSender
from broker.watches.watcher import LatestWatcher, OrderedWatcher, TopicListWatcher
from limiter.errors import PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from limiter.tasks import BackgroundTasks
from proto.commands import error_command
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import TypeAlias

    from broker.stores.changes import ChangeFeed
    from broker.watches.context import WatchContext
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

    Check: TypeAlias = Callable[[], Awaitable[None]]

logger = logging.getLogger(__name__)

_CLOSED_EARLY = "Closed watcher before creation was complete"


@dataclass(frozen=True, slots=True)
class AskedWatch:
    """A WATCH_TOPIC_LIST request that is registered, but not answered yet.

    Attributes:
        first: Whether the request is the first for its id.
        check: Refuses unauthorized requests; None if already checked.
    """

    request: pb.CommandWatchTopicList
    watch: Watch
    cnx: ServedConnection
    first: bool
    check: Check | None = None


class TopicListService:
    """Creates, answers, updates and ends the watches of a broker's clients.

    Attributes:
        totals: Counters for the metrics.
        registry: The watches by connection, and the watched namespaces.
    """

    def __init__(self, context: WatchContext) -> None:
        self._context = context
        self._profile = context.profile
        self.totals = context.totals
        self.registry = WatchRegistry(context)
        self._listings = NamespaceListings(context, self.registry)
        self._feed: ChangeFeed | None = None
        self._tasks = BackgroundTasks(_told_failure)

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to follow the metadata store's feed of topic changes."""
        self._feed = self._context.store.changes()
        self._tasks.start(self._read_feed(self._feed))

    def stop(self) -> None:
        """End every watch, and stop following the store's changes; may be called repeatedly."""
        for cnx in self.registry.connections:
            self.registry.cancel_owner(cnx)
        if self._feed is not None:
            self._feed.close()
        self._tasks.cancel()

    async def _read_feed(self, feed: ChangeFeed) -> None:
        dropped = 0
        async for change in feed:
            if feed.dropped > dropped:
                dropped = feed.dropped
                self.registry.missed_some()
            self.registry.push(change)

    def cancel_owner(self, cnx: ServedConnection) -> None:
        """End all watches of a closed connection."""
        self.registry.cancel_owner(cnx)

    # -- requests -----------------------------------------------------------------------------

    def ask(
        self,
        request: pb.CommandWatchTopicList,
        namespace: NamespaceName,
        cnx: ServedConnection,
        check: Check | None = None,
    ) -> AskedWatch:
        """Register a WATCH_TOPIC_LIST request; requests must be registered in order of arrival.

        Args:
            request: The command.
            namespace: The command's namespace.
            cnx: The client's connection.
            check: Refuses unauthorized requests; called before any reading.

        Raises:
            RequestError: The request is refused.
        """
        pattern = accepted_pattern(
            request.topics_pattern, self._context.pattern_filter.rules, self._profile
        )
        watch = self.registry.of(cnx).by_id.get(request.watcher_id)
        first = watch is None
        if watch is None:
            watcher = self._watcher(request.watcher_id, namespace, cnx)
            watch = self.registry.add(cnx, namespace, watcher, pattern)
        else:
            self._check_same(watch, namespace, pattern)
            watch.asked_again = True
        watch.pending[request.request_id] = None
        return AskedWatch(request, watch, cnx, first, check)

    def _check_same(self, watch: Watch, namespace: NamespaceName, pattern: str) -> None:
        """Refuse a watcher id that is in use for other topics, unless the profile allows it."""
        watched = watch.namespace.namespace, watch.pattern
        if not self._profile.first_watch_answers and watched != (namespace, pattern):
            raise RequestError(
                pb.NotAllowedError,
                f"{REFUSED}id {watch.watcher.sender.watcher_id} watches {watch.pattern[:100]!r} in "
                f"{str(watched[0])[:100]}: close that watch first, or use another id",
            )

    async def answer(self, asked: AskedWatch) -> None:
        """Answer a registered request with the topics' names, and send updates from then on.

        Raises:
            RequestError: The request is refused.
        """
        if asked.watch.ended and not _has_failed(asked.watch.created):
            return  # Closed meanwhile, and answered by the close.
        with _pending(asked.watch, asked.request.request_id):
            await (self._create(asked) if asked.first else self._answer_again(asked))

    def close(self, watcher_id: int, cnx: ServedConnection) -> None:
        """End a watch; requests that wait for its creation get an error."""
        watch = self.registry.take(cnx, watcher_id)
        if watch is None:
            return
        java_class = "java.lang.IllegalStateException: " if self._profile.java_errors else ""
        for request_id, task in watch.pending.items():
            cnx.send(error_command(request_id, pb.MetadataError, java_class + _CLOSED_EARLY))
            if task is not None:
                task.cancel()

    # -- a new watch --------------------------------------------------------------------------

    async def _create(self, asked: AskedWatch) -> None:
        watch = asked.watch
        try:
            if asked.check is not None:
                await asked.check()
            await self._find_set(watch)
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
        sender = WatchSender(self._context, cnx, backoff, watcher_id, str(namespace))
        most_bytes = self._context.max_update_bytes
        if not self._profile.one_by_one:
            return LatestWatcher(sender, self.totals, most_bytes)
        list_again = partial(self._listings.list, namespace, sender)
        return OrderedWatcher(
            sender, self.totals, most_bytes, lambda: self._tasks.start(list_again())
        )

    async def _find_set(self, watch: Watch) -> None:
        """Attach a watch to the set of names that match its pattern; build the set if it is new."""
        namespace = watch.namespace
        known = namespace.sets.get(watch.pattern) is not None
        try:
            if self._profile.lists_for_each_request or not known:
                await self._listings.list(namespace.namespace, watch.watcher.sender)
            while True:
                watched = await namespace.watched_set(watch.pattern)
                # All watchers may have left since; the set is then no longer updated.
                if namespace.sets.get(watch.pattern) is watched:
                    break
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        except InvalidPatternError as error:
            raise RequestError(pb.InvalidTopicName, str(error)) from None
        watch.watcher.watch(watched)
        self.registry.check_room()

    async def _answer_first(self, request: pb.CommandWatchTopicList, watch: Watch) -> None:
        if self._profile.second_request_empties and watch.asked_again:
            # As recorded of a real broker.
            await watch.watcher.answer_with_nothing(request.request_id)
            return
        await self._answer(request, watch)

    async def _answer_again(self, asked: AskedWatch) -> None:
        """Answer a repeated request for a watcher id, with the present names of its set."""
        watch = asked.watch
        if asked.check is not None:
            await asked.check()
        await asyncio.shield(watch.created)
        if self._profile.lists_for_each_request:
            await self._listings.list(watch.namespace.namespace, watch.watcher.sender)
        await self._answer(asked.request, watch)

    async def _answer(self, request: pb.CommandWatchTopicList, watch: Watch) -> None:
        known_hash = request.topics_hash if request.HasField("topics_hash") else None
        try:
            await watch.watcher.answer(request.request_id, known_hash)
        except PermitTooLargeError as error:
            raise limit_exceeded(error, "answer", LimitType.DIRECT_MEMORY, self._profile) from None


@contextmanager
def _pending(watch: Watch, request_id: int) -> Iterator[None]:
    """Register a request during the ``with`` block, so that closing the watch can answer it."""
    watch.pending[request_id] = asyncio.current_task()
    try:
        yield
    finally:
        watch.pending.pop(request_id, None)


def _has_failed(created: asyncio.Future[None]) -> bool:
    return created.done() and not created.cancelled() and created.exception() is not None


def _settle(created: asyncio.Future[None], error: BaseException | None) -> None:
    """Wake the requests that wait for a watch's creation, with its success or error.

    A refusal is copied: the original's traceback holds frames, and the frames hold the watch with
    all its names.
    """
    if created.done():
        return
    if isinstance(error, RequestError):
        error = RequestError(error.server_error, error.message)
    if error is None:
        created.set_result(None)
    elif isinstance(error, asyncio.CancelledError):
        created.cancel()
    else:
        created.set_exception(error)
        created.exception()  # Usually there is no waiter.


def _told_failure(error: BaseException) -> None:
    logger.warning("a step of the watches failed and was skipped: %s", error)
