"""One client of a storm: connects, asks once at its moment, reads the answer at its own speed.

It does what a consumer's regular-expression subscription does first, and nothing else: CONNECT,
then GET_TOPICS_OF_NAMESPACE. It never retries. Reading is paused and resumed by an exact token
budget and never takes more at once than the budget holds, so that the server meets a reader of
exactly that speed.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

import proto.PulsarApi_pb2 as pb
from loadgen.answer_stream import AnswerStream, Listing
from loadgen.pacing import ReadBudget
from loadgen.refusals import refusal_reason
from loadgen.storm_frames import PONG, connect_frame, request_frame
from loadgen.task_report import Outcome, RequestRecord
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    from limiter.clock import TimerHandle
    from loadgen.answers import AnswerBody
    from loadgen.scenario import ClientPlan
    from loadgen.storm_context import StormContext

_CONNECTION_WIDE = 2**64 - 1  # request id of an ERROR that answers no request


class ClientState(Enum):
    """Where a client stands."""

    HANDSHAKE = auto()
    READY = auto()
    WAITING = auto()
    CLOSED = auto()


class ConnectFailedError(Exception):
    """A client did not get as far as CONNECTED; the message says why."""


class StormClient(asyncio.BufferedProtocol):
    """One connection. Its mutable state is its state, its requests and its read budget."""

    def __init__(self, plan: ClientPlan, context: StormContext) -> None:
        self.plan = plan
        self.records: list[RequestRecord] = []
        self.handshake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._context = context
        self._state = ClientState.HANDSHAKE
        self._stream = AnswerStream(self._new_body)
        self._transport: asyncio.Transport | None = None
        self._budget: ReadBudget | None = None
        self._timeout: TimerHandle | None = None
        self._resume: TimerHandle | None = None
        self._end = ""  # why the connection ended

    # What the task calls.

    @property
    def start_error_seconds(self) -> float:
        """How late the first request was sent; 0 if none was."""
        started = self.records[0].started_seconds if self.records else None
        return 0.0 if started is None else started - self.plan.intended_start_seconds

    def begin(self) -> None:
        """Send the first request; whoever is no longer connected gets rows all the same."""
        self._send(self.plan.intended_start_seconds)

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def unreachable(self, reason: str, at_seconds: float) -> None:
        """Record that this client got no connection; ``at_seconds`` is relative to T0."""
        self._state = ClientState.CLOSED
        for _ in range(self._context.scenario.requests_per_client):
            record = self._new_record(self.plan.intended_start_seconds)
            self._conclude(record, Outcome.UNREACHABLE, reason, at_seconds)
        self._context.on_finished()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(connect_frame())

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return room for no more than may be read now."""
        del sizehint  # the loop's wish; the budget decides
        if self._budget is None:
            return self._context.scratch
        allowed = self._budget.available_bytes(self._context.time.monotonic())
        return self._context.scratch[: max(1, allowed)]

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        if self._state is ClientState.CLOSED:
            return
        self._account(nbytes)
        try:
            for received in self._stream.feed(self._context.scratch[:nbytes]):
                self._receive(received)
        except RemoteProtocolError as error:
            self._break_off(f"protocol error: {error}")
            return
        self._forget_other_commands()
        self._pace()

    def connection_lost(self, exc: Exception | None) -> None:
        """Settle what was under way."""
        reason = "closed by the server" if exc is None else f"connection lost: {exc}"
        self._lost(reason)

    # Requests.

    def _send(self, intended_start_seconds: float) -> None:
        context, transport = self._context, self._transport
        if self._state is not ClientState.READY or transport is None or transport.is_closing():
            self._finish()
            return
        self._state = ClientState.WAITING
        record = self._new_record(intended_start_seconds)
        record.started_seconds = context.time.seconds()
        transport.write(
            request_frame(record.namespace, context.scenario.pattern, len(self.records))
        )
        self._budget = ReadBudget(
            context.scenario.read_rate_bytes_per_second, context.time.monotonic()
        )
        self._timeout = context.clock.call_at(
            context.clock.now() + context.scenario.timeout_seconds, self._time_out
        )
        context.counters.started += 1

    def _new_record(self, intended_start_seconds: float) -> RequestRecord:
        record = RequestRecord(self.plan.client, self.plan.namespace.name, intended_start_seconds)
        self.records.append(record)
        return record

    def _settle(self, outcome: Outcome, reason: str = "") -> None:
        finished_seconds = self._context.time.seconds()
        self._conclude(self.records[-1], outcome, reason, finished_seconds)
        if self._timeout is not None:
            self._timeout.cancel()
        self._budget = None
        if self._state is ClientState.WAITING:
            self._state = ClientState.READY
        if len(self.records) < self._context.scenario.requests_per_client:
            self._send(finished_seconds)
        else:
            self._context.on_finished()

    def _conclude(
        self, record: RequestRecord, outcome: Outcome, reason: str, finished_seconds: float
    ) -> None:
        record.outcome, record.reason = outcome, reason
        record.finished_seconds = finished_seconds
        self._context.counters.count(outcome)

    def _finish(self) -> None:
        """Give a row to each request that can no longer be sent."""
        now_seconds = self._context.time.seconds()
        reason = f"not sent: {self._end or 'the connection had ended'}"
        while len(self.records) < self._context.scenario.requests_per_client:
            intended_seconds = now_seconds if self.records else self.plan.intended_start_seconds
            record = self._new_record(intended_seconds)
            self._conclude(record, Outcome.DISCONNECTED, reason, now_seconds)
        self._context.on_finished()

    def _time_out(self) -> None:
        reason = f"no complete answer within {self._context.scenario.timeout_seconds:g} s"
        self._state, self._end = ClientState.CLOSED, reason
        self.close()
        self._settle(Outcome.TIMEOUT, reason)

    def _break_off(self, reason: str) -> None:
        self._lost(reason)
        self.close()

    def _lost(self, reason: str) -> None:
        state, self._state = self._state, ClientState.CLOSED
        self._end = self._end or reason
        if self._resume is not None:
            self._resume.cancel()
        if state is ClientState.HANDSHAKE and not self.handshake.done():
            self.handshake.set_exception(ConnectFailedError(reason))
        elif state is ClientState.WAITING:
            self._settle(Outcome.DISCONNECTED, reason)

    # What arrives.

    def _new_body(self) -> AnswerBody:
        return self._context.checker.body(self.plan.namespace)

    def _receive(self, received: Listing | pb.BaseCommand) -> None:
        if isinstance(received, Listing):
            if self._is_awaited(received.request_id):
                self.records[-1].answer = self._context.checker.submit(received.body)
                self._settle(Outcome.ANSWERED)
        elif received.type == pb.BaseCommand.PING:
            self._pong()
        elif received.type == pb.BaseCommand.ERROR:
            self._refused(received.error)
        elif self._state is ClientState.HANDSHAKE:
            self._shake_hands(received)

    def _shake_hands(self, received: pb.BaseCommand) -> None:
        if received.type != pb.BaseCommand.CONNECTED:
            name = pb.BaseCommand.Type.Name(received.type)
            self._break_off(f"the server answered CONNECT with {name}")
            return
        self._state = ClientState.READY
        self._context.counters.connected += 1
        self.handshake.set_result(None)

    def _refused(self, error: pb.CommandError) -> None:
        reason = refusal_reason(error.error, error.message)
        if self._state is ClientState.HANDSHAKE:
            self._break_off(reason)
        elif self._is_awaited(error.request_id):
            self._settle(Outcome.REFUSED, reason)

    def _is_awaited(self, request_id: int) -> bool:
        if self._state is not ClientState.WAITING:
            return False
        return request_id in (len(self.records), _CONNECTION_WIDE)

    def _pong(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(PONG)

    # Reading speed.

    def _account(self, nbytes: int) -> None:
        if self._budget is None or self._state is not ClientState.WAITING:
            return
        self._budget.spend(nbytes)
        self._context.counters.bytes += nbytes
        record = self.records[-1]
        record.bytes += nbytes
        if record.first_byte_seconds is None:
            record.first_byte_seconds = self._context.time.seconds()

    def _forget_other_commands(self) -> None:
        # A PING that came before the answer was not its first byte.
        if self._state is ClientState.WAITING and self._stream.idle:
            self.records[-1].first_byte_seconds = None

    def _pace(self) -> None:
        if self._budget is None or self._transport is None or self._state is ClientState.CLOSED:
            return
        pause_seconds = self._budget.pause_seconds(self._context.time.monotonic())
        if pause_seconds > 0:
            self._transport.pause_reading()
            clock = self._context.clock
            self._resume = clock.call_at(clock.now() + pause_seconds, self._resume_reading)

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
