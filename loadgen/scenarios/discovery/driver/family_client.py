"""One client of a family, without sockets: it asks over wires, as its schedule says.

Real sockets and virtual time drive the same class; see :mod:`loadgen.clients.wires`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from client.discovery.actions import Unanswered
from loadgen.clients.records import Outcome
from loadgen.scenarios.discovery.driver.chance import Chance
from loadgen.scenarios.discovery.driver.links import Links
from loadgen.scenarios.discovery.driver.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Failure
    from limiter.clock import TimerHandle
    from loadgen.clients.context import ClientContext
    from loadgen.clients.records import RequestRecord
    from loadgen.clients.wires import Wires
    from loadgen.scenarios.discovery.driver.link import Link
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan

RUN_ENDED = "not answered when the run ended"
"""Reason of a request that its client's end cut."""


class ClientOutcome(StrEnum):
    """The end that a client came to."""

    BACK = "back"
    REFUSED = "refused"  # it gave up, on a server's word
    LOST = "lost"  # it gave up without one
    UNFINISHED = "unfinished"


class FamilyClient:
    """A client. Its mutable state is its subscription, its connections and how far it has come.

    Args:
        plan: Its part of the run.
        context: What the clients of a task share; ``on_finished`` is not called.
        wires: Makes its connections.
        on_settled: Called once: when it is back for the first time, or has given up.

    Attributes:
        random: Returns numbers from 0 to 1; what is left to chance in it.
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
        self.random: Callable[[], float] = Chance(plan.seed)
        self._wires = wires
        self._on_settled = on_settled
        self._links = Links(
            plan,
            context,
            wires,
            on_lost=self._lost,
            on_updated=self._updated,
            on_consumer_closed=self._consumer_closed,
        )
        self._subscription: Subscription | None = None
        self._begun = self._settled = self._stopped = False
        self._drops = iter(plan.disconnects_seconds)
        self._timers: dict[str, TimerHandle] = {}
        self._listings = self._restarts = 0
        self.intended_start_seconds = plan.start_seconds
        self.outcome = ClientOutcome.UNFINISHED
        self.reason = ""
        self.back_seconds: float | None = None
        self.listed_seconds: float | None = None

    # -- the task's side ----------------------------------------------------------------------

    @property
    def records(self) -> list[RequestRecord]:
        """A row for each request."""
        return self._links.ledger.records

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
        """Connect before the start, and prepare; whether that succeeds shows when it asks."""
        self._subscription = self._new_subscription()
        self._links.service.connect()

    def begin(self) -> None:
        """Start: now is the plan's moment, or the client's turn has come."""
        if self._begun or self._stopped:
            return
        self._begun = True
        if self.intended_start_seconds is None:
            self.intended_start_seconds = self.context.time.seconds()
        self.context.counters.family(self.plan.group.family).arrived += 1
        self._wires.begin()
        self._arm_drop()
        self._subscription = self._subscription or self._new_subscription()
        self._subscription.start(self.intended_start_seconds)

    def stop(self, on_idle: Callable[[], None] = lambda: None) -> None:
        """Ask for nothing any more; ``on_idle`` is called when requests under way have ended."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        if self._subscription is not None:
            self._subscription.close()
        self._links.ledger.when_idle(on_idle)

    def end(self) -> None:
        """End what is still under way, and all connections."""
        self.stop()
        self._links.close(Outcome.TIMEOUT, RUN_ENDED)

    def close(self) -> None:
        """Close all connections; requests under way have no end."""
        self.stop()
        self._links.close(None, "")

    def row(self, task: int) -> dict[str, Any]:
        """Describe it, as in CLIENT_ROWS."""
        plan, links, subscription = self.plan, self._links, self._subscription
        connected = links.connected_at
        return {
            "client": plan.client,
            "task": task,
            "group": plan.group.name,
            "family": plan.group.family,
            "namespace": plan.namespace.name,
            "intended_start_seconds": self.intended_start_seconds,
            "connected_seconds": None if connected is None else connected - self.context.time.t0,
            "listed_seconds": self.listed_seconds,
            "back_seconds": self.back_seconds,
            "outcome": str(self.outcome),
            "reason": self._reason(),
            "listings": self._listings + (subscription.listings if subscription else 0),
            "reconnects": links.reconnects,
            "restarts": self._restarts,
            "connections": links.most_connections,
        }

    def _reason(self) -> str:
        """Return why it gave up, or of one that still tries, what came of its last attempt."""
        if self.outcome is ClientOutcome.UNFINISHED and self._subscription is not None:
            return self._subscription.reason or self.reason  # or of the program before
        return self.reason

    # -- from start to back -------------------------------------------------------------------

    def _new_subscription(self) -> Subscription:
        return Subscription(
            self.plan,
            self._links,
            self.context.clock,
            self.random,
            on_progress=self._progress,
            on_given_up=self._gave_up,
            on_unwatched=self._fail,
        )

    def _progress(self) -> None:
        subscription = self._subscription
        assert subscription is not None
        if self.listed_seconds is None and subscription.listed:
            self.listed_seconds = self.context.time.seconds()
        if self.back_seconds is None and subscription.complete:
            self.back_seconds = self.context.time.seconds()
            self.outcome, self.reason = ClientOutcome.BACK, ""
            self.context.counters.family(self.plan.group.family).back += 1
            self._settle()

    def _gave_up(self, failure: Failure, reason: str) -> None:
        """Fail the subscription: the program ends, or starts anew."""
        group = self.plan.group
        if group.family != "once" and self._subscription is not None:
            self._subscription.close()
            self._links.close(Outcome.DISCONNECTED, "the client had given up")
        if group.restart_seconds and not self._stopped:
            clock = self.context.clock
            due = clock.now() + group.restart_seconds
            self._timers["restart"] = clock.call_at(due, self._restart)
            if self.back_seconds is None:
                self.reason = reason
        else:
            self._fail(failure, reason)

    def _fail(self, failure: Failure, reason: str) -> None:
        """Take note that it will not be back any more."""
        if self.back_seconds is None:
            lost = isinstance(failure, Unanswered)
            self.outcome = ClientOutcome.LOST if lost else ClientOutcome.REFUSED
            self.reason = reason
            self._settle()

    def _restart(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._listings += self._subscription.listings
        self._restarts += 1
        self._subscription = self._new_subscription()
        self._subscription.start(self.context.time.seconds())

    def _settle(self) -> None:
        if not self._settled:
            self._settled = True
            self._on_settled(self)

    # -- connections --------------------------------------------------------------------------

    def _lost(self, link: Link) -> None:
        if self._subscription is not None and self._begun:
            self._subscription.lost(link)

    def _updated(self, topics_hash: str) -> None:
        if self._subscription is not None:
            self._subscription.updated(topics_hash)

    def _consumer_closed(self, consumer_id: int) -> None:
        if self._subscription is not None:
            self._subscription.consumer_closed(consumer_id)

    def _arm_drop(self) -> None:
        moment = next(self._drops, None)
        if moment is not None and not self._stopped:
            clock = self.context.clock
            due = clock.now() + max(0.0, moment - self.context.time.seconds())
            self._timers["drop"] = clock.call_at(due, self._drop)

    def _drop(self) -> None:
        self._links.drop("dropped by the client")
        self._arm_drop()
