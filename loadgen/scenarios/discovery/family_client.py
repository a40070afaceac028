"""One client of a family, without sockets: it performs what its schedule asks for, over wires.

Real sockets and virtual time drive the same class; see :mod:`loadgen.clients.wires`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from client.discovery.actions import GiveUp, ListTopics, LookUpPattern, OpenWatch, Unanswered
from client.discovery.families import schedule_of
from client.discovery.schedule import DiscoveryOptions
from client.discovery.topics_pattern import TopicsPattern
from loadgen.clients.records import Outcome
from loadgen.clients.wires import ListQuestion
from loadgen.scenarios.discovery.attaching import Attachments
from loadgen.scenarios.discovery.chance import Chance
from loadgen.scenarios.discovery.links import LIST, LOOK_UP, WATCH, Links
from loadgen.scenarios.discovery.once import OnceSchedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action, Failure
    from client.discovery.schedule import DiscoverySchedule
    from limiter.clock import TimerHandle
    from loadgen.clients.context import ClientContext
    from loadgen.clients.records import RequestRecord
    from loadgen.clients.wires import BrokerAddress, ListAnswer, Wire, Wires
    from loadgen.scenarios.discovery.links import Link
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan

_WATCHER_ID = 1


class ClientOutcome(StrEnum):
    """What became of a client."""

    BACK = "back"
    REFUSED = "refused"  # it gave up, on a server's word
    LOST = "lost"  # it gave up without one
    UNFINISHED = "unfinished"


class FamilyClient:
    """A client. Its mutable state is its schedule, its connections and how far it has come.

    Args:
        plan: Its part of the run.
        context: What the clients of a task share; ``on_finished`` is not called.
        wires: Makes its connections.
        on_settled: Called once: when it is back for the first time, or has given up.

    Attributes:
        outcome, reason: What became of it by now.
        back_seconds: When it was back for the first time, relative to T0.
        listed_seconds: When it had its first list.
    """

    def __init__(
        self,
        plan: FamilyClientPlan,
        context: ClientContext[Any],
        wires: Wires,
        on_settled: Callable[[FamilyClient], None],
    ) -> None:
        self.plan = plan
        self.context = context
        self._wires = wires
        self._on_settled = on_settled
        self._random = Chance(plan.seed)
        self._links = Links(
            plan,
            context,
            wires,
            on_lost=self._lost,
            on_updated=self._updated,
            on_consumer_closed=self._consumer_closed,
        )
        self._pattern = f"persistent://{plan.namespace.name}/{plan.group.pattern or '.*'}"
        self._schedule: DiscoverySchedule | None = None
        self._attachments: Attachments | None = None
        self._linked: Wire | None = None  # the connection that the schedule knows of
        self._watch_link: Link | None = None
        self._subscribed = self._settled = self._stopped = False
        self._drops = iter(plan.disconnects_seconds)
        self._timers: dict[str, TimerHandle] = {}
        self.intended_start_seconds = plan.start_seconds
        self.listings = self.restarts = 0
        self.outcome = ClientOutcome.UNFINISHED
        self.reason = ""
        self.back_seconds: float | None = None
        self.listed_seconds: float | None = None

    # -- the task's side ----------------------------------------------------------------------

    @property
    def records(self) -> list[RequestRecord]:
        """A row for each request."""
        return self._links.records

    @property
    def connections_lost(self) -> int:
        """Connections that had to be made again."""
        return self._links.reconnects

    @property
    def start_error_seconds(self) -> float:
        """Delay of the first request; 0 if none was sent."""
        if not self.records or self.records[0].started_seconds is None:
            return 0.0
        return self.records[0].started_seconds - self.records[0].intended_start_seconds

    def connect(self) -> None:
        """Connect before the start; whether that succeeds shows when it asks."""
        self._links.service.connect()

    def begin(self) -> None:
        """Start: now is the plan's moment, or the client's turn has come."""
        if self._schedule is not None or self._stopped:
            return
        if self.intended_start_seconds is None:
            self.intended_start_seconds = self.context.time.seconds()
        self.context.counters.family(self.plan.group.family).arrived += 1
        self._wires.begin()
        self._arm_drop()
        self._start()

    def stop(self, on_idle: Callable[[], None] = lambda: None) -> None:
        """Ask for nothing any more; ``on_idle`` is called when requests under way have ended."""
        self._stopped = True
        self._links.when_idle(on_idle)
        for timer in self._timers.values():
            timer.cancel()
        self._close_parts()

    def end(self) -> None:
        """End what is still under way, and all connections."""
        self.stop()
        self._links.close(Outcome.TIMEOUT, "not answered when the run ended")

    def close(self) -> None:
        """Close all connections; requests under way have no end."""
        self.stop()
        self._links.close(None, "")

    def row(self, task: int) -> dict[str, Any]:
        """Describe it, as in CLIENT_ROWS."""
        connected = self._links.connected_at
        return {
            "client": self.plan.client,
            "task": task,
            "group": self.plan.group.name,
            "family": self.plan.group.family,
            "namespace": self.plan.namespace.name,
            "intended_start_seconds": self.intended_start_seconds,
            "connected_seconds": None if connected is None else connected - self.context.time.t0,
            "listed_seconds": self.listed_seconds,
            "back_seconds": self.back_seconds,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "listings": self.listings,
            "reconnects": self._links.reconnects,
            "restarts": self.restarts,
            "connections": self._links.most_connections,
        }

    # -- from start to back -------------------------------------------------------------------

    def _start(self) -> None:
        group, clock = self.plan.group, self.context.clock
        options = DiscoveryOptions(
            pattern=self._pattern,
            properties=group.properties,
            period_seconds=group.period_seconds,
            operation_timeout_seconds=group.operation_timeout_seconds,
        )
        once = group.family == "once"
        self._schedule = (
            OnceSchedule(
                options,
                clock,
                self._perform,
                due=self._due(),
                listings_each=group.pipelined,
                repeat_seconds=group.repeat_seconds,
                pattern=None if group.pattern is None else self._pattern,
            )
            if once
            else schedule_of(group.family, options, clock, self._perform, self._random)
        )
        self._subscribed = False
        self._linked = self._watch_link = None
        self._attachments = Attachments(
            self._links,
            clock,
            self._random,
            subscription=f"loadgen-{group.name}",
            on_attached=self._attached,
            on_given_up=self._gave_up,
            retry_seconds=0.0 if once else group.operation_timeout_seconds,
        )
        self._schedule.start()

    def _due(self) -> float:
        """Return the clock's reading at the intended start."""
        assert self.intended_start_seconds is not None
        late = self.context.time.seconds() - self.intended_start_seconds
        return self.context.clock.now() - late

    def _attached(self) -> None:
        assert self._schedule is not None
        self._subscribed = True
        self._schedule.subscribed()
        self._look_whether_back()

    def _look_whether_back(self) -> None:
        assert self._schedule is not None
        if self.back_seconds is None and self._subscribed and self._schedule.complete:
            self.back_seconds = self.context.time.seconds()
            self.outcome, self.reason = ClientOutcome.BACK, ""
            self.context.counters.family(self.plan.group.family).back += 1
            self._settle()

    def _gave_up(self, failure: Failure, reason: str) -> None:
        """Fail the subscription: the program ends, or starts anew."""
        group = self.plan.group
        if self.back_seconds is None:
            lost = isinstance(failure, Unanswered)
            self.outcome = ClientOutcome.LOST if lost else ClientOutcome.REFUSED
            self.reason = reason
        if group.family != "once":
            self._close_parts()
            self._links.close(Outcome.DISCONNECTED, "the client had given up")
        if group.restart_seconds and not self._stopped:
            clock = self.context.clock
            due = clock.now() + group.restart_seconds
            self._timers["restart"] = clock.call_at(due, self._restart)
        else:
            self._settle()

    def _restart(self) -> None:
        self.restarts += 1
        self.outcome = ClientOutcome.UNFINISHED
        self._start()

    def _close_parts(self) -> None:
        if self._schedule is not None:
            self._schedule.close()
        if self._attachments is not None:
            self._attachments.close()

    def _settle(self) -> None:
        if not self._settled:
            self._settled = True
            self._on_settled(self)

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
            self._gave_up(action.failure, self.reason)
        else:
            self._close_watch()

    def _list(self, action: ListTopics) -> None:
        group = self.plan.group
        self.listings += 1
        wanted = 0 if self._subscribed else group.attach
        own = wanted and action.pattern is None and group.pattern is not None
        question = ListQuestion(
            self.plan.namespace.name,
            action.pattern,
            action.topics_hash,
            action.properties or None,
            wanted,
            TopicsPattern(self._pattern) if own else None,
        )
        self._links.request(
            self._links.service,
            LIST,
            partial(self._send_list, question),
            self._listed,
            self._list_failed,
            self._intended_seconds(),
        )

    def _intended_seconds(self) -> float | None:
        """Return when this listing is due; None for now."""
        if self.listings <= self.plan.group.pipelined:
            return self.intended_start_seconds
        if isinstance(self._schedule, OnceSchedule):
            late = self.context.clock.now() - self._schedule.due
            return self.context.time.seconds() - late
        return None

    def _send_list(self, question: ListQuestion, wire: Wire, request_id: int) -> None:
        if wire is not self._linked and self._schedule is not None:
            self._linked = wire
            # Whether watches are offered, the broker says that serves the pattern: there may be a
            # proxy in between, which offers none itself.
            reconciles = self._links.service.reconciles
            self._schedule.connected(watches=True, reconciles=reconciles)
        wire.list_topics(request_id, question)

    def _listed(self, answer: ListAnswer) -> None:
        schedule, attachments = self._schedule, self._attachments
        assert schedule is not None
        assert attachments is not None
        first = schedule.topics_hash is None
        schedule.listed(answer.topics_hash or schedule.topics_hash or "")
        if first:
            if self.listed_seconds is None:
                self.listed_seconds = self.context.time.seconds()
            attachments.attach(answer.names)
        self._look_whether_back()

    def _list_failed(self, failure: Failure, reason: str) -> None:
        assert self._schedule is not None
        if self.back_seconds is None:
            self.reason = reason
        self._schedule.list_failed(failure)

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
        if self._stopped:
            return
        namespace = self.plan.namespace.name

        def send(wire: Wire, request_id: int) -> None:
            wire.open_watch(request_id, _WATCHER_ID, namespace, action.pattern, action.topics_hash)

        answered = partial(self._watch_opened, link)
        self._links.request(link, WATCH, send, answered, self._watch_failed)

    def _watch_opened(self, link: Link, topics_hash: str) -> None:
        assert self._schedule is not None
        self._watch_link = link
        self._schedule.watch_opened(topics_hash)
        self._look_whether_back()

    def _watch_failed(self, failure: Failure, reason: str) -> None:
        assert self._schedule is not None
        if self.back_seconds is None:
            self.reason = reason
        self._schedule.watch_failed(failure)
        self._look_whether_back()

    def _close_watch(self) -> None:
        link, self._watch_link = self._watch_link, None
        if link is not None and link.wire is not None:
            link.wire.close_watch(_WATCHER_ID)

    def _updated(self, topics_hash: str) -> None:
        if self._schedule is not None:
            self._schedule.watch_updated(topics_hash, fits=True)

    # -- losses -------------------------------------------------------------------------------

    def _lost(self, link: Link) -> None:
        """Tell of a connection that is gone: of two, one may still be there."""
        if self._schedule is None or self._attachments is None:
            return
        listed = link is self._links.service and self._linked is not None
        if listed or link is self._watch_link:
            self._close_watch()
            self._linked = None
            self._schedule.connection_lost()
        self._attachments.lost(link)

    def _consumer_closed(self, consumer_id: int) -> None:
        if self._attachments is not None:
            self._attachments.closed_by_broker(consumer_id)

    def _arm_drop(self) -> None:
        moment = next(self._drops, None)
        if moment is not None and not self._stopped:
            clock = self.context.clock
            due = clock.now() + max(0.0, moment - self.context.time.seconds())
            self._timers["drop"] = clock.call_at(due, self._drop)

    def _drop(self) -> None:
        self._links.drop("dropped by the client")
        self._arm_drop()
