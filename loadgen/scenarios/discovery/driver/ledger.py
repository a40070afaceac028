"""The requests of one client: each has one row, and one end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.discovery.actions import Unanswered
from loadgen.clients.records import Outcome, RequestRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Failure
    from limiter.clock import TimerHandle
    from loadgen.clients.context import ClientContext
    from loadgen.clients.wires import Wire
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan

LIST, LOOK_UP, WATCH, SUBSCRIBE = "list", "lookup", "watch", "subscribe"
"""Operations, as rows name them."""

_OUTCOMES = {
    Unanswered.TIMED_OUT: Outcome.TIMEOUT,
    Unanswered.DISCONNECTED: Outcome.DISCONNECTED,
    Unanswered.UNREACHABLE: Outcome.UNREACHABLE,
}


class Request:
    """One request until it ends.

    Args:
        record: Its row.
        send: Sends it on a wire, with its number.
        answered: Told what was answered.
        failed: Told why there was no answer: the code, and words.
    """

    __slots__ = ("answered", "failed", "record", "send", "timer")

    def __init__(
        self,
        record: RequestRecord,
        send: Callable[[Wire, int], None],
        answered: Callable[[Any], None],
        failed: Callable[[Failure, str], None],
    ) -> None:
        self.record = record
        self.send = send
        self.answered = answered
        self.failed = failed
        self.timer: TimerHandle | None = None


class Ledger:
    """The rows of one client.

    Args:
        plan: The client's.
        context: The task's.

    Attributes:
        records: A row for each request.
        pending: Requests that have not ended.
    """

    def __init__(self, plan: FamilyClientPlan, context: ClientContext[Any]) -> None:
        self._plan = plan
        self._on_idle: Callable[[], None] | None = None
        self.context = context
        self.records: list[RequestRecord] = []
        self.pending = 0

    def add(self, operation: str, intended_seconds: float | None) -> RequestRecord:
        """Return the row of a new request, that is due now unless a moment is named."""
        plan = self._plan
        if intended_seconds is None:
            intended_seconds = self.context.time.seconds()
        record = RequestRecord(
            plan.client,
            plan.namespace.name,
            intended_seconds,
            operation=operation,
            group=plan.group.name,
            family=plan.group.family,
        )
        self.records.append(record)
        self.pending += 1
        return record

    def start(self, record: RequestRecord) -> None:
        """Note that a request is sent now."""
        record.started_seconds = self.context.time.seconds()
        if self._counts(record):
            self.context.counters.started += 1

    def withdraw(self, record: RequestRecord) -> None:
        """Take back a request that was not sent, because the server is known not to do that."""
        self.records.remove(record)
        self._ended()

    def end(self, request: Request, outcome: Outcome | Failure, reason: str = "") -> None:
        """Note that a request has ended now."""
        if isinstance(outcome, Unanswered):
            outcome = _OUTCOMES[outcome]
        elif not isinstance(outcome, Outcome):
            outcome = Outcome.REFUSED
        if request.timer is not None:
            request.timer.cancel()
        record = request.record
        record.outcome, record.reason = outcome, reason
        record.finished_seconds = self.context.time.seconds()
        if record.first_byte_seconds is None and outcome in (Outcome.ANSWERED, Outcome.REFUSED):
            record.first_byte_seconds = record.finished_seconds
        if self._counts(record):
            took_seconds = record.finished_seconds - record.intended_start_seconds
            self.context.counters.count(
                outcome, record.operation, seconds=took_seconds, family=record.family
            )
        self._ended()

    def _counts(self, record: RequestRecord) -> bool:
        """Tell whether a request is part of the figures: what is due in the warm-up is not."""
        begins: float = self.context.scenario.phases.warm_up_seconds
        return record.intended_start_seconds >= begins

    def when_idle(self, on_idle: Callable[[], None]) -> None:
        """Have it told when all requests have ended, once."""
        self._on_idle = on_idle
        self._tell_if_idle()

    def _ended(self) -> None:
        self.pending -= 1
        self._tell_if_idle()

    def _tell_if_idle(self) -> None:
        if self._on_idle is not None and self.pending == 0:
            on_idle, self._on_idle = self._on_idle, None
            on_idle()
