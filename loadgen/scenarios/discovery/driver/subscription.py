"""One subscription to a pattern: performs over connections what its schedule asks for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.discovery.actions import GiveUp, ListTopics, LookUpPattern, OpenWatch
from client.discovery.families import schedule_of
from client.discovery.schedule import DiscoveryOptions
from client.discovery.topics_pattern import TopicsPattern
from loadgen.clients.wires import ListQuestion
from loadgen.scenarios.discovery.driver.attaching import Attachments
from loadgen.scenarios.discovery.driver.ledger import LIST, LOOK_UP, WATCH
from loadgen.scenarios.discovery.driver.once import OnceSchedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action, Failure
    from client.discovery.schedule import DiscoverySchedule
    from limiter.clock import Clock
    from loadgen.clients.wires import BrokerAddress, ListAnswer, Wire
    from loadgen.scenarios.discovery.driver.link import Link
    from loadgen.scenarios.discovery.driver.links import Links
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan

_WATCHER_ID = 1


class Subscription:
    """Plays a program from its subscribing on. A program that starts anew has another one.

    Its mutable state is its schedule, its topics, and where its watch is.

    Args:
        plan: The client's.
        links: Its connections.
        clock: Where time comes from.
        random: Returns numbers from 0 to 1.
        on_progress: Told when it may be further than before.
        on_given_up: Told why it fails.
        on_unwatched: Told why it goes on without the watch that its family wants.

    Attributes:
        listings: How often topics were asked for.
        listed: Whether it has a list.
        reason: Why a request failed last, in words.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        plan: FamilyClientPlan,
        links: Links,
        clock: Clock,
        random: Callable[[], float],
        *,
        on_progress: Callable[[], None],
        on_given_up: Callable[[Failure, str], None],
        on_unwatched: Callable[[Failure, str], None],
    ) -> None:
        self._plan = plan
        self._links = links
        self._clock = clock
        self._on_progress = on_progress
        self._on_given_up = on_given_up
        self._on_unwatched = on_unwatched
        self._intended_seconds = 0.0
        self._attached = self._unwatched = self._closed = False
        self._linked: Wire | None = None  # the connection that the schedule knows of
        self._watch_link: Link | None = None
        self.listings = 0
        self.listed = False
        self.reason = ""
        self._pattern = f"persistent://{plan.namespace.name}/{plan.group.pattern or '.*'}"
        self._schedule = self._new_schedule(random)
        group = plan.group
        self._attachments = Attachments(
            links,
            clock,
            random,
            subscription=f"loadgen-{group.name}",
            on_attached=self._all_attached,
            on_given_up=on_given_up,
            retry_seconds=0.0 if group.family == "once" else group.operation_timeout_seconds,
        )

    def _new_schedule(self, random: Callable[[], float]) -> DiscoverySchedule:
        group = self._plan.group
        options = DiscoveryOptions(
            pattern=self._pattern,
            properties=group.properties,
            period_seconds=group.period_seconds,
            operation_timeout_seconds=group.operation_timeout_seconds,
        )
        if group.family != "once":
            return schedule_of(group.family, options, self._clock, self._perform, random)
        return OnceSchedule(
            options,
            self._clock,
            self._perform,
            listings_each=group.pipelined,
            repeat_seconds=group.repeat_seconds,
            pattern=None if group.pattern is None else self._pattern,
        )

    @property
    def complete(self) -> bool:
        """True when the list, the watch if one is offered, and all topics are there."""
        return self._attached and self._schedule.complete and not self._unwatched

    def start(self, intended_seconds: float) -> None:
        """Begin; that was to be at a moment relative to T0, now or a little earlier."""
        self._intended_seconds = intended_seconds
        if isinstance(self._schedule, OnceSchedule):
            late_seconds = self._links.ledger.context.time.seconds() - intended_seconds
            self._schedule.due = self._clock.now() - late_seconds
        self._schedule.start()

    def close(self) -> None:
        """Ask for nothing any more."""
        self._closed = True
        self._schedule.close()
        self._attachments.close()

    # -- what happens to connections ----------------------------------------------------------

    def lost(self, link: Link) -> None:
        """Go on without a connection: of two, the other may still be there."""
        listed = link is self._links.service and self._linked is not None
        if listed or link is self._watch_link:
            self._close_watch()
            self._linked = None
            self._schedule.connection_lost()
        self._attachments.lost(link)

    def updated(self, topics_hash: str) -> None:
        """Take a change of the topics; their names are not kept, so the hash fits."""
        self._schedule.watch_updated(topics_hash, fits=True)

    def consumer_closed(self, consumer_id: int) -> None:
        """Attach again to a topic."""
        self._attachments.closed_by_broker(consumer_id)

    # -- what the schedule asks for -----------------------------------------------------------

    def _perform(self, action: Action) -> None:
        if isinstance(action, ListTopics):
            self._list(action)
        elif isinstance(action, OpenWatch):
            self._open_watch(action)
        elif isinstance(action, LookUpPattern):
            # Nobody needs the broker's connection, but Java makes it.
            self._look_up(
                action.pattern,
                lambda broker: self._links.to(broker).connect(),
                lambda failure, reason: None,
            )
        elif isinstance(action, GiveUp):
            self._on_given_up(action.failure, self.reason)
        else:
            self._close_watch()

    def _list(self, action: ListTopics) -> None:
        plan, group = self._plan, self._plan.group
        self.listings += 1
        wanted = 0 if self.listed else group.attach
        # A broker may leave the pattern to the client: that is asked without, or it is too long.
        own = wanted and group.pattern is not None
        question = ListQuestion(
            plan.namespace.name,
            action.pattern,
            action.topics_hash,
            action.properties or None,
            wanted,
            TopicsPattern(self._pattern) if own else None,
        )
        send = partial(self._send_list, question)
        due = self._listing_due()
        self._links.request(self._links.service, LIST, send, self._listed, self._list_failed, due)

    def _listing_due(self) -> float | None:
        """Return when the present listing was due, as the plan has it; None: it is a poll."""
        if self.listings <= self._plan.group.pipelined:
            return self._intended_seconds
        if isinstance(self._schedule, OnceSchedule):
            return self._intended_seconds + self._schedule.beats * self._plan.group.repeat_seconds
        return None

    def _send_list(self, question: ListQuestion, wire: Wire, request_id: int) -> None:
        if wire is not self._linked:
            self._linked = wire
            # Whether watches are offered, the broker says that serves the pattern: there may be a
            # proxy in between, which offers none itself.
            reconciles = self._links.service.reconciles
            self._schedule.connected(watches=True, reconciles=reconciles)
        wire.list_topics(request_id, question)

    def _listed(self, answer: ListAnswer) -> None:
        first, self.listed = not self.listed, True
        self._schedule.listed(answer.topics_hash or self._schedule.topics_hash or "")
        if first:
            self._attachments.attach(answer.names)
        self._on_progress()

    def _list_failed(self, failure: Failure, reason: str) -> None:
        self.reason = reason
        self._schedule.list_failed(failure)

    def _all_attached(self) -> None:
        self._attached = True
        self._schedule.subscribed()
        self._on_progress()

    # -- the watch ----------------------------------------------------------------------------

    def _look_up(
        self,
        pattern: str,
        answered: Callable[[BrokerAddress], None],
        failed: Callable[[Failure, str], None],
    ) -> None:
        self._links.request(
            self._links.service,
            LOOK_UP,
            lambda wire, request_id: wire.look_up(request_id, pattern),
            answered,
            failed,
        )

    def _open_watch(self, action: OpenWatch) -> None:
        if action.again and self._watch_link is not None:
            self._ask_watch(action, self._watch_link)
            return
        self._look_up(
            action.pattern,
            lambda broker: self._ask_watch(action, self._links.to(broker)),
            self._watch_failed,
        )

    def _ask_watch(self, action: OpenWatch, link: Link) -> None:
        if self._closed:
            return
        namespace = self._plan.namespace.name

        def send(wire: Wire, request_id: int) -> None:
            wire.open_watch(request_id, _WATCHER_ID, namespace, action.pattern, action.topics_hash)

        answered = partial(self._watch_opened, link)
        self._links.request(link, WATCH, send, answered, self._watch_failed)

    def _watch_opened(self, link: Link, topics_hash: str) -> None:
        self._watch_link, self._unwatched = link, False
        self._schedule.watch_opened(topics_hash)
        self._on_progress()

    def _watch_failed(self, failure: Failure, reason: str) -> None:
        self.reason = reason
        self._schedule.watch_failed(failure)
        if self._schedule.complete and failure != pb.NotAllowedError:
            self._unwatched = True
            self._on_unwatched(failure, reason)
        self._on_progress()

    def _close_watch(self) -> None:
        link, self._watch_link = self._watch_link, None
        if link is not None and link.wire is not None:
            link.wire.close_watch(_WATCHER_ID)
