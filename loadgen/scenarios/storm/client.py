"""One client of a storm: connects, asks once at its moment, reads the answer at its own speed.

It does what a consumer's regular-expression subscription does first, and nothing else: CONNECT,
then GET_TOPICS_OF_NAMESPACE. It never retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.connection import ClientConnection, request_frame
from loadgen.clients.pacing import ReadBudget
from loadgen.clients.records import Outcome, RequestRecord
from proto.commands import NO_REQUEST

if TYPE_CHECKING:
    from limiter.clock import TimerHandle
    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.storm.scenario import StormScenario


class StormClient(ClientConnection):
    """One client. Its mutable state is its requests, the last of which may be under way."""

    connections_lost = 0  # they last for its requests alone

    def __init__(self, plan: ClientPlan, context: ClientContext[StormScenario]) -> None:
        super().__init__(plan, context)
        self.records: list[RequestRecord] = []
        self._waiting = False
        self._timeout: TimerHandle | None = None
        self._end = ""  # why the connection ended
        self._stopped = False

    # Called by the task.

    @property
    def start_error_seconds(self) -> float:
        """Delay of the first request; 0 if none was sent."""
        started = self.records[0].started_seconds if self.records else None
        return 0.0 if started is None else started - self.plan.intended_start_seconds

    def begin(self) -> None:
        """Send the first request; a client that lost its connection gets rows all the same."""
        self._send(self.plan.intended_start_seconds)

    def stop(self) -> None:
        """Ask for nothing more; a request under way may end."""
        self._stopped = True

    def unreachable(self, reason: str, at_seconds: float) -> None:
        """Record that this client got no connection; ``at_seconds`` is relative to T0."""
        self._closed = True
        for _ in range(self.context.scenario.requests_per_client):
            record = self._new_record(self.plan.intended_start_seconds)
            self._conclude(record, Outcome.UNREACHABLE, reason, at_seconds)
        self.context.on_finished()

    # Requests.

    def _send(self, intended_start_seconds: float) -> None:
        context = self.context
        if not self.usable:
            self._finish()
            return
        self._waiting = True
        record = self._new_record(intended_start_seconds)
        record.started_seconds = context.time.seconds()
        self.send(request_frame(record.namespace, context.scenario.pattern, len(self.records)))
        self._budget = ReadBudget(
            context.scenario.read_rate_bytes_per_second, context.time.monotonic()
        )
        self._timeout = context.clock.call_at(
            context.clock.now() + context.scenario.timeout_seconds, self._time_out
        )
        context.counters.started += 1

    def _new_record(self, intended_start_seconds: float) -> RequestRecord:
        record = RequestRecord(
            self.plan.client, self.plan.namespace.name, intended_start_seconds, family="once"
        )
        self.records.append(record)
        return record

    def _settle(self, outcome: Outcome, reason: str = "") -> None:
        finished_seconds = self.context.time.seconds()
        self._conclude(self.records[-1], outcome, reason, finished_seconds)
        if self._timeout is not None:
            self._timeout.cancel()
        self._budget = None
        self._waiting = False
        if not self._stopped and len(self.records) < self.context.scenario.requests_per_client:
            self._send(finished_seconds)
        else:
            self.context.on_finished()

    def _conclude(
        self, record: RequestRecord, outcome: Outcome, reason: str, finished_seconds: float
    ) -> None:
        record.outcome, record.reason = outcome, reason
        record.finished_seconds = finished_seconds
        took_seconds = finished_seconds - record.intended_start_seconds
        self.context.counters.count(outcome, seconds=took_seconds)

    def _finish(self) -> None:
        """Give a row to each request that can no longer be sent."""
        now_seconds = self.context.time.seconds()
        reason = f"not sent: {self._end or 'the connection had ended'}"
        while len(self.records) < self.context.scenario.requests_per_client:
            intended_seconds = now_seconds if self.records else self.plan.intended_start_seconds
            record = self._new_record(intended_seconds)
            self._conclude(record, Outcome.DISCONNECTED, reason, now_seconds)
        self.context.on_finished()

    def _time_out(self) -> None:
        reason = f"no complete answer within {self.context.scenario.timeout_seconds:g} s"
        self._closed, self._end = True, reason
        self.close()
        self._settle(Outcome.TIMEOUT, reason)

    # Called by the connection.

    def listing_received(self, listing: Listing) -> None:
        """Settle the request that it answers."""
        if self._is_awaited(listing.request_id):
            self.records[-1].answer = self.context.checker.submit(listing.body)
            self._settle(Outcome.ANSWERED)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Settle the request that was refused."""
        if self._is_awaited(request_id):
            self._settle(Outcome.REFUSED, reason)

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes of the answer that is awaited."""
        if not self._waiting:
            return
        self.context.counters.bytes += nbytes
        record = self.records[-1]
        record.bytes += nbytes
        if record.first_byte_seconds is None:
            record.first_byte_seconds = self.context.time.seconds()

    def between_frames(self) -> None:
        """Forget a PING that came before the answer: it was not its first byte."""
        if self._waiting:
            self.records[-1].first_byte_seconds = None

    def ended(self, reason: str) -> None:
        """Settle the request under way."""
        self._end = self._end or reason
        if self._waiting:
            self._settle(Outcome.DISCONNECTED, reason)

    def _is_awaited(self, request_id: int) -> bool:
        return self._waiting and request_id in (len(self.records), NO_REQUEST)
