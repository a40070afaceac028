"""Clients that discover topics with the requests and retries of an official client library.

They subscribe to a topics pattern.

The schedule of each library, recorded from official clients, is a class of :mod:`client.discovery`;
this module performs the schedule.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

import proto.PulsarApi_pb2 as pb
from client.discovery.families import schedule_of
from client.discovery.schedule import (
    CloseWatch,
    DiscoveryOptions,
    GiveUp,
    ListTopics,
    LookUpPattern,
    OpenWatch,
)
from client.discovery.topics_pattern import TopicsPattern
from limiter.backoff import Backoff
from loadgen.engine.frames import CLOSE_WATCH, WATCHER_ID, request_frame
from loadgen.engine.rows import Failed
from loadgen.plan.fields import Duration, Moment, Pattern, Whole
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from client.discovery.schedule import Action
    from loadgen.engine.client import LoadClient
    from loadgen.engine.connection import LoadConnection
    from loadgen.engine.link import Link

Family = Literal["polite", "java-watch", "java-poll", "cpp", "go"]
_TUNNELLING = ("polite", "java-watch", "java-poll")
"""Families whose clients connect to the broker of their pattern even without a subscription."""
REOPEN_SECONDS = 0.1
"""Seconds from the broker's closing of a consumer until the new lookup of the topic."""
_MOST_SECONDS = 60.0
_FINAL = frozenset(
    {
        pb.AuthenticationError,
        pb.AuthorizationError,
        pb.ConsumerAssignError,
        pb.ConsumerBusy,
        pb.IncompatibleSchema,
        pb.InvalidTopicName,
        pb.NotAllowedError,
        pb.SubscriptionNotFound,
        pb.TopicNotFound,
        pb.TopicTerminatedError,
    }
)
"""Refusals after which official clients do not retry."""


class Discover(Group):
    """Discover topics by a pattern, with the requests and retries of a client library.

    Attributes:
        library: The client library whose schedule of requests the clients follow.
        pattern: Local part of the topics pattern; None is all topics of the namespace.
        properties: Properties that the client sends with each list request (PIP-452).
        attach: Number of discovered topics that each client subscribes to.
        period: Time between two polls.
        restart: Delay until a client with a failed subscription starts again; 0: never.
    """

    operations: ClassVar[tuple[str, ...]] = ("list", "watch", "lookup", "subscribe")

    do: Literal["discover"] = "discover"
    library: Family
    pattern: Pattern | None = None
    properties: dict[str, str] = Field(default_factory=dict)
    attach: Annotated[Whole, Field(ge=0, le=10_000)] = 0
    period: Duration = 60.0
    restart: Moment = 0.0

    @property
    def family(self) -> str:
        """The client library whose requests and retries the group imitates."""
        return self.library

    @property
    def connections_each(self) -> int:
        """The largest number of connections that one client has at the same time.

        One connection is for listing. Clients that attach to topics, or connect to the pattern's
        broker, have a second one.
        """
        return 2 if self.attach or self.library in _TUNNELLING else 1

    @property
    def lasts(self) -> bool:
        """Always False: the run may end once all clients have been served completely."""
        return False

    async def client(self, me: LoadClient) -> None:
        """Subscribe to the pattern; after a final failure, start again when ``restart`` is over."""
        me.times_out_late = self.library.startswith("java")
        while True:
            failed = await _Subscription(self, me).run()
            if not self.restart or me.stopping.is_set():
                me.gave_up(failed)
                return
            me.drop()
            await me.sleep(self.restart)
            me.event("restarted", text=failed.reason)


class _Subscription:
    """A client's subscription to a topics pattern, driven by a client library's schedule.

    Mutable state: the library's schedule, the discovered topics, and the watch's connection.
    """

    def __init__(self, group: Discover, me: LoadClient) -> None:
        self._group = group
        self._me = me
        self._pattern = f"persistent://{me.namespace}/{group.pattern or '.*'}"
        options = DiscoveryOptions(
            pattern=self._pattern,
            properties=group.properties,
            period_seconds=group.period,
            operation_timeout_seconds=group.timeout,
        )
        self._schedule = schedule_of(
            group.library, options, me.context.clock, self._perform, me.random
        )
        self._over: asyncio.Future[Failed] = asyncio.get_running_loop().create_future()
        self._known: LoadConnection | None = None  # the connection last reported to the schedule
        self._watch_link: Link | None = None
        self._unwatched = False
        self._due: float | None = me.now()
        self._missing: set[str] | None = None  # topics to attach to; None before the first list
        self._closed: dict[int, asyncio.Event] = {}
        self._last = Failed(pb.UnknownError, "")

    async def run(self) -> Failed:
        """Perform the requests of the library's schedule; return the failure that ends them."""
        me = self._me
        me.on_pushed, me.on_lost = self._pushed, self._lost
        self._due = me.started if not self._schedule.listings else None
        try:
            self._schedule.start()
            return await self._over
        finally:
            self._schedule.close()

    def _perform(self, action: Action) -> None:
        if self._over.done():
            return
        if isinstance(action, ListTopics):
            self._me.spawn(self._list(action))
        elif isinstance(action, OpenWatch):
            self._me.spawn(self._open_watch(action))
        elif isinstance(action, LookUpPattern):
            self._me.spawn(self._connect_to_broker(action.pattern))
        elif isinstance(action, GiveUp):
            self._over.set_result(Failed(action.failure, self._last.reason))
        elif isinstance(action, CloseWatch):
            self._close_watch()

    # -- listing ------------------------------------------------------------------------------

    async def _list(self, action: ListTopics) -> None:
        me, group = self._me, self._group
        due, self._due = self._due, None
        wanted = group.attach if self._missing is None else 0
        # A broker may leave the pattern to the client: the request has no pattern, or a too long
        # one.
        own = wanted and group.pattern is not None
        if await me.service.ready() is None:
            self._follow(me.service)
        answer = await me.list_topics(
            pattern=action.pattern,
            properties=action.properties,
            topics_hash=action.topics_hash,
            names_wanted=wanted,
            matching=TopicsPattern(self._pattern) if own else None,
            due=due,
        )
        if answer.failed is not None:
            self._last = answer.failed
            self._schedule.list_failed(answer.failed.failure)
            return
        self._schedule.listed(answer.value.topics_hash or self._schedule.topics_hash or "")
        if self._missing is None:
            me.event("listed", me.now() - me.started)
            self._attach(answer.value.names)
        self._progress()

    def _follow(self, link: Link) -> None:
        """Notify the library's schedule if a link has a new connection."""
        connection = link.connection
        if connection is None or connection is self._known:
            return
        self._known = connection
        # Support of watches is a feature of the pattern's broker: a proxy in between may not
        # offer watches.
        reconciles = connection.features.supports_topic_watcher_reconcile
        self._schedule.connected(watches=True, reconciles=reconciles)

    def _lost(self, link: Link) -> None:
        """Notify the library's schedule of a lost connection, if the schedule uses that connection.

        The client may also have connections to other brokers.
        """
        listed = link is self._me.service and self._known is not None
        if listed or link is self._watch_link:
            self._close_watch()
            self._known = None
            self._schedule.connection_lost()

    def _progress(self) -> None:
        if self._missing == set() and self._schedule.complete and not self._unwatched:
            self._me.back()

    # -- the watch ----------------------------------------------------------------------------

    async def _connect_to_broker(self, pattern: str) -> None:
        """Look up the topics pattern like a topic, and connect to the broker that the answer names.

        Java does this too, although no request needs the connection.
        """
        found = await self._me.look_up(pattern)
        if found.failed is None:
            await self._me.to(found.value).ready()

    async def _open_watch(self, action: OpenWatch) -> None:
        me, link = self._me, self._watch_link
        if not action.again or link is None:
            found = await me.look_up(action.pattern)
            if found.failed is not None:
                self._watch_failed(found.failed)
                return
            link = me.to(found.value)
        await link.ready()
        connection = link.connection
        if connection is not None and not connection.features.supports_topic_watchers:
            failed = Failed(pb.NotAllowedError, "the server offers no watches")
            self._watch_failed(failed)
            return
        command = pb.CommandWatchTopicList(
            watcher_id=WATCHER_ID,
            namespace=me.namespace,
            topics_pattern=action.pattern,
            topics_hash=action.topics_hash,
        )
        answer = await me.request(link, "watch", request_frame(command))
        if answer.failed is not None:
            self._watch_failed(answer.failed)
            return
        self._watch_link, self._unwatched = link, False
        self._schedule.watch_opened(answer.value.topics_hash)
        self._progress()

    def _watch_failed(self, failed: Failed) -> None:
        self._last = failed
        self._schedule.watch_failed(failed.failure)
        if self._schedule.complete and failed.failure != pb.NotAllowedError:
            self._unwatched = True
            self._me.gave_up(failed)
        self._progress()

    def _close_watch(self) -> None:
        link, self._watch_link = self._watch_link, None
        if link is not None and link.connection is not None:
            link.connection.send(CLOSE_WATCH)

    def _pushed(self, command: pb.BaseCommand, _: bytes) -> None:
        if command.type == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            # The names are not kept, so the hash fits.
            self._schedule.watch_updated(command.watchTopicUpdate.topics_hash, fits=True)
        elif command.type == pb.BaseCommand.CLOSE_CONSUMER:
            closed = self._closed.get(command.close_consumer.consumer_id)
            if closed is not None:
                closed.set()

    # -- topics -------------------------------------------------------------------------------

    def _attach(self, topics: list[str]) -> None:
        self._missing = set(topics)
        for number, topic in enumerate(topics):
            self._me.spawn(self._keep_attached(number, topic))
        if not topics:
            self._schedule.subscribed()

    async def _keep_attached(self, number: int, topic: str) -> None:
        """Subscribe to a discovered topic, and again whenever the consumer is lost.

        First attempts end with the operation timeout. Once a first attempt has succeeded, later
        ones are repeated without end.
        """
        me, backoff = self._me, Backoff(0.1, _MOST_SECONDS, self._me.random)
        give_up_at, stood = me.now() + self._group.timeout, False
        while not me.stopping.is_set() and not self._over.done():
            closed = self._closed[number] = asyncio.Event()
            command = pb.CommandSubscribe(
                topic=topic,
                subscription=f"loadgen-{self._group.name}",
                subType=pb.CommandSubscribe.Shared,
                consumer_id=number,
                durable=True,
                force_topic_creation=False,
            )
            link, answer = await me.open(topic, "subscribe", request_frame(command), topic)
            if answer.failed is None:
                if self._missing and topic in self._missing:
                    self._missing.remove(topic)
                    if not self._missing:
                        self._schedule.subscribed()
                        self._progress()
                stood = True
                backoff.reset()
                await me.first(closed, link.lost)
                await me.sleep(REOPEN_SECONDS if closed.is_set() else backoff.next())
                continue
            delay = backoff.next()
            late = not stood and me.now() + delay >= give_up_at
            if answer.failed.failure in _FINAL or late:
                if not stood and not self._over.done():
                    self._over.set_result(answer.failed)
                return
            await me.sleep(delay)
