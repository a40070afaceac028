"""Discovery of a pattern's topics: sends the requests of a schedule, and stores the names."""

from __future__ import annotations

import asyncio
import logging
from random import random
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.discovery.families import schedule_of
from client.discovery.schedule import CloseWatch, ListTopics, LookUpPattern, OpenWatch, Unanswered
from client.discovery.topics_pattern import MatchingNames, topics_of
from client.exceptions import (
    AlreadyClosed,
    ConnectError,
    InvalidConfiguration,
    NotConnected,
    PulsarException,
    ServerResponseError,
    TooManyLookupRequestException,
    server_response_error,
)
from client.pulsar_client import topics_request
from limiter.tasks import BackgroundTasks
from proto.commands import NO_REQUEST
from proto.errors import RemoteProtocolError
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx
    from client.context import ClientContext
    from client.discovery.schedule import Action, DiscoveryOptions, Failure
    from client.discovery.topics_pattern import TopicsPattern

logger = logging.getLogger(__name__)


class TopicListWatch:
    """A watch of the topics in a namespace that match a pattern (see AttachedWatch).

    Args:
        watcher_id: The watch's number, unique in the client.
        namespace: ``tenant/namespace``.
        on_update: Function called with added and deleted topics, in order, once ``opened``.
        on_lost: Function called after the connection was lost.

    Attributes:
        cnx: The connection on which the watch is open, or None.
    """

    def __init__(
        self,
        watcher_id: int,
        namespace: str,
        on_update: Callable[[pb.CommandWatchTopicUpdate], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._watcher_id = watcher_id
        self._namespace = namespace
        self._on_update = on_update
        self._on_lost = on_lost
        self._early: list[pb.CommandWatchTopicUpdate] | None = None
        self.cnx: ClientCnx | None = None

    async def open(
        self, cnx: ClientCnx, pattern: str, topics_hash: str | None
    ) -> pb.CommandWatchTopicListSuccess:
        """Request the watch, or the list of the open watch again.

        Call ``opened`` after applying the list in the response.

        Raises:
            ServerResponseError: The broker refused; NotAllowedError if watches are not offered.
            The errors of :meth:`client.connection.cnx.ClientCnx.request`.
        """
        if cnx.server is None or not cnx.server.feature_flags.supports_topic_watchers:
            raise server_response_error(pb.NotAllowedError, f"{cnx.peer} offers no watches")

        def build(request_id: int) -> pb.BaseCommand:
            watch = pb.CommandWatchTopicList(
                request_id=request_id,
                watcher_id=self._watcher_id,
                namespace=self._namespace,
                topics_pattern=pattern,
            )
            if topics_hash is not None:
                watch.topics_hash = topics_hash
            return pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=watch)

        # Updates may arrive before the answer is read.
        self._early = []
        cnx.attached.watches[self._watcher_id] = self
        self.cnx = cnx
        try:
            answer = await cnx.request(build)
        except BaseException:
            self._early = None
            self.close()
            raise
        return answer.watchTopicListSuccess

    def opened(self) -> None:
        """Start to call ``on_update``, first for the updates received since the watch opened."""
        early, self._early = self._early, None
        for update in early or ():
            self._on_update(update)

    def update_received(self, update: pb.CommandWatchTopicUpdate) -> None:
        """Call ``on_update`` for added and deleted topics; before ``opened``, store the update."""
        if self._early is not None:
            self._early.append(update)
        else:
            self._on_update(update)

    def connection_lost(self) -> None:
        """End the watch, because its connection is lost."""
        self.cnx = self._early = None
        self._on_lost()

    def close(self) -> None:
        """Close the watch, if open, without waiting for the broker's response."""
        cnx, self.cnx = self.cnx, None
        if cnx is None:
            return
        cnx.attached.watches.pop(self._watcher_id, None)
        if not cnx.closed:
            close = pb.CommandWatchTopicListClose(
                request_id=NO_REQUEST, watcher_id=self._watcher_id
            )
            kind = pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE
            cnx.send(pb.BaseCommand(type=kind, watchTopicListClose=close))


_FAILURES: tuple[tuple[type[PulsarException], Failure], ...] = (
    (ConnectError, Unanswered.UNREACHABLE),
    (NotConnected, Unanswered.DISCONNECTED),
    (InvalidConfiguration, pb.InvalidTopicName),
    (TooManyLookupRequestException, pb.TooManyRequests),
)
"""The failure codes of errors that are raised without a response from the server."""


class TopicDiscovery:
    """The topics that match a pattern, as found by the schedule's last request.

    Only matching names are kept: a whole list is streamed.

    Args:
        context: State that the client shares with all its producers and consumers.
        pattern: The pattern.
        mode: Whether to find persistent topics, non-persistent topics or both.
        options: The schedule's options.
        family: The name of the schedule.
        on_topics: Function called with the topics, without partitions, whenever they may have
            changed.
        random: Function that returns random numbers from 0 to 1.

    Attributes:
        names: Full names of the matching topics, including partitions.
        schedule: The schedule.
    """

    def __init__(  # noqa: PLR0913 - many collaborators
        self,
        context: ClientContext,
        pattern: TopicsPattern,
        mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType,
        options: DiscoveryOptions,
        family: str,
        on_topics: Callable[[set[str]], None],
        random: Callable[[], float] = random,
    ) -> None:
        self._context = context
        self._pattern = pattern
        self._mode = mode
        self._on_topics = on_topics
        self._tasks = BackgroundTasks()
        self._found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: PulsarException | None = None
        self._closed = False
        self.names: set[str] = set()
        watcher_id = next(context.watch_ids)
        namespace = pattern.namespace
        self._watch = TopicListWatch(watcher_id, namespace, self._updated, self._lost)
        # A watch never opened: notifies of the lost listing connection.
        self._link_id = next(context.watch_ids)
        self._link = TopicListWatch(self._link_id, namespace, self._updated, self._lost)
        self.schedule = schedule_of(family, options, context.clock, self._perform, random)

    async def open(self) -> set[str]:
        """Request the matching topics, with the schedule's retries, and return them.

        Raises:
            AlreadyClosed: The discovery, or the client, was closed meanwhile.
            PulsarException: The error of the last attempt.
        """
        self.schedule.start()
        await self._found
        return topics_of(self.names)

    async def close(self) -> None:
        """Stop requesting topics; further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self.schedule.close()
        self._watch.close()
        self._unlink()
        self._fail(AlreadyClosed("the consumer was closed"))
        self._tasks.cancel()
        await self._tasks.finished()

    # -- the schedule's requests --------------------------------------------------------------

    def _perform(self, action: Action) -> None:
        if isinstance(action, ListTopics):
            self._tasks.start(self._list(action))
        elif isinstance(action, OpenWatch):
            self._tasks.start(self._open_watch(action))
        elif isinstance(action, LookUpPattern):
            self._tasks.start(self._look_up(action))
        elif isinstance(action, CloseWatch):
            self._watch.close()
        else:
            self._fail(self._error or NotConnected("topics were not listed"))

    def _fail(self, error: PulsarException) -> None:
        if not self._found.done():
            self._found.set_exception(error)
            self._found.exception()  # Possibly without a waiter.

    async def _list(self, action: ListTopics) -> None:
        before = self.names
        request = topics_request(
            self._pattern.namespace,
            self._mode,
            action.pattern,
            action.topics_hash,
            action.properties,
        )
        try:
            cnx = await self._context.cluster.connect()
            self._linked(cnx)
            found = MatchingNames(await cnx.topics_raw(request), self._pattern)
            for _ in found.read():
                await asyncio.sleep(0)
        except AlreadyClosed as error:
            self._fail(error)
            return
        except (PulsarException, RemoteProtocolError) as error:
            self.schedule.list_failed(self._failure(error))
            self._error = None  # Releases the frames of its traceback.
            return
        overtaken = self.names is not before  # by an update; the order is unknown
        if found.changed and not overtaken:
            self._have(found.names)
        digest = None if overtaken else found.topics_hash
        self.schedule.listed(digest or topics_hash(self.names))
        if overtaken:
            self.schedule.watch_updated(topics_hash(self.names), fits=False)
        if not self._found.done():
            self._found.set_result(None)

    async def _look_up(self, action: LookUpPattern) -> None:
        try:
            await self._context.cluster.lookup(action.pattern)
        except PulsarException as error:
            logger.debug("%s was not looked up: %s", action.pattern, error)

    async def _open_watch(self, action: OpenWatch) -> None:
        try:
            cnx = self._watch.cnx if action.again else None
            if cnx is None:
                cnx = await self._context.cluster.connection_of(action.pattern)
            answer = await self._watch.open(cnx, action.pattern, action.topics_hash)
        except PulsarException as error:
            self.schedule.watch_failed(self._failure(error))
            self._error = None
            return
        if answer.topics_hash != action.topics_hash:
            self._have(set(answer.topic))
        self.schedule.watch_opened(topics_hash(self.names))
        self._watch.opened()

    def _failure(self, error: PulsarException | RemoteProtocolError) -> Failure:
        """Return the schedule's code for an error.

        The error is stored for the caller that waits for the first topics.
        """
        if isinstance(error, RemoteProtocolError):
            self._error = NotConnected(f"a listing's answer cannot be read: {error}")
            return pb.UnknownError
        self._error = error
        if isinstance(error, ServerResponseError):
            return error.server_error
        for kind, failure in _FAILURES:
            if isinstance(error, kind):
                return failure
        return Unanswered.TIMED_OUT

    # -- names --------------------------------------------------------------------------------

    def _have(self, names: set[str]) -> None:
        if names != self.names:
            self.names = names
            if self._found.done():
                self._on_topics(topics_of(names))

    def _updated(self, update: pb.CommandWatchTopicUpdate) -> None:
        self._have((self.names | set(update.new_topics)) - set(update.deleted_topics))
        own = topics_hash(self.names)
        self.schedule.watch_updated(own, fits=own == update.topics_hash)

    # -- connections --------------------------------------------------------------------------

    def _linked(self, cnx: ClientCnx) -> None:
        """Register with the connection used for listings, to notice when it is lost."""
        if self._link.cnx is cnx or self._closed:
            return
        self._unlink()
        self._link.cnx = cnx
        cnx.attached.watches[self._link_id] = self._link
        # Only the broker of the pattern announces watches: a proxy in between offers none itself.
        assert cnx.server is not None
        reconciles = cnx.server.feature_flags.supports_topic_watcher_reconcile
        self.schedule.connected(watches=True, reconciles=reconciles)

    def _unlink(self) -> None:
        cnx, self._link.cnx = self._link.cnx, None
        if cnx is not None:
            cnx.attached.watches.pop(self._link_id, None)

    def _lost(self) -> None:
        """Stop using the connections of the watch and of listings until the next request.

        One of the two connections may still be alive.
        """
        if self._closed:
            return
        self._watch.close()
        self._unlink()
        self.schedule.connection_lost()
