"""Recording of a client's requests and events as rows, and counting of requests under way."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from client.discovery.schedule import Unanswered
from loadgen.engine.rows import EventRow, Outcome, RequestRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.discovery.schedule import Failure
    from loadgen.engine.context import TaskContext
    from loadgen.engine.rows import Failed
    from loadgen.plan.clients import ClientPlan

_OUTCOMES: dict[Failure, Outcome] = {
    Unanswered.TIMED_OUT: Outcome.TIMEOUT,
    Unanswered.DISCONNECTED: Outcome.DISCONNECTED,
    Unanswered.UNREACHABLE: Outcome.UNREACHABLE,
}


class RowWriter:
    """Records the requests and events of one client as rows.

    Mutable state: the number of requests under way.

    Attributes:
        now: Returns seconds since the agreed start.
        stopping: Set when no new request is to begin.
    """

    def __init__(self, plan: ClientPlan, context: TaskContext) -> None:
        self.plan = plan
        self.context = context
        self.group = plan.group
        self.namespace = plan.namespace.name
        self.now: Callable[[], float] = context.time.seconds
        self.stopping = asyncio.Event()
        self._whose = plan.number, plan.group.name, plan.group.family
        self._under_way = 0
        self._idle = asyncio.Event()

    def event(self, what: str, value: float | None = None, text: str = "") -> None:
        """Record an event of the client, such as a reconnection."""
        row = EventRow(self.now(), *self._whose, self.namespace, what, value, text)
        self.context.rows.events.append(row)
        self.context.totals.clients[f"{self.group.name} {what}"] += 1

    def begin_row(self, operation: str, due: float | None = None, item: str = "") -> RequestRow:
        """Begin a row that records a request; :meth:`end_row` completes the row."""
        row = self._row(operation, self.now() if due is None else due, item)
        self.context.rows.requests.append(row)
        self._under_way += 1
        return row

    def _row(self, operation: str, due: float, item: str = "") -> RequestRow:
        return RequestRow(*self._whose, operation, self.namespace, due, item=item)

    def _finished(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    @contextmanager
    def not_idle(self) -> Iterator[None]:
        """Keep the run from ending during a ``with`` block, at most for the length of the drain."""
        self._under_way += 1
        try:
            yield
        finally:
            self._finished()

    def end_row(self, row: RequestRow, failed: Failed | None = None, wrong: str = "") -> None:
        """Complete the row of a request that was answered, failed, or was answered wrongly."""
        row.done = self.now()
        if failed is not None:
            row.outcome = _OUTCOMES.get(failed.failure, Outcome.REFUSED)
            row.reason = failed.reason
        else:
            row.outcome, row.reason = Outcome.WRONG if wrong else Outcome.ANSWERED, wrong
        if row.first_byte is None and row.outcome in (Outcome.ANSWERED, Outcome.REFUSED):
            row.first_byte = row.done
        if row.due >= self.context.warm_up:
            self.context.totals.end(row)
        self._finished()

    async def finish(self) -> None:
        """Wait until the client has no request under way."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()
