"""Requests in flight on a connection; each holds a lookup permit until it is answered."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

import proto.PulsarApi_pb2 as pb
from proto.commands import error_command
from proto.transport.weak_calls import weakly
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from limiter.flow.lookup_semaphore import LookupPermit, LookupSemaphore
    from limiter.flow.response_budget import ResponseReservation
    from server.connection.request_errors import ErrorForm
    from server.connection.served_connection import ServedConnection
    from server.connection.unanswered_requests import UnansweredRequests

    Work = Callable[[], Coroutine[object, object, None]]

logger = logging.getLogger(__name__)


class RequestTasks:
    """The running tasks of a connection's requests, cancelled when the connection is lost.

    A connection's requests end with it: ``cancel_all`` is called in the event-loop iteration of the
    disconnect. (Not asyncio's TaskGroup, because a failed request must not cancel its siblings, and
    because the group would need a task for each of thousands of idle connections.)

    Bound: each request holds a slot of the lookup semaphore.

    Args:
        on_error: Answers a request whose handler failed unexpectedly; called with the request id
            and the error's text.
    """

    def __init__(self, on_error: Callable[[int, str], object]) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, request_id: int, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a request in a task; an unexpected error is sent to the client.

        Args:
            request_id: The id of the request, for the response to an unexpected error.
            work: Makes the coroutine; not called if the connection ends first.
        """
        task = asyncio.get_running_loop().create_task(self._guard(request_id, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(
        self, request_id: int, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            await work()
        except Exception as error:
            logger.exception("request %d failed after an internal error", request_id)
            self._on_error(request_id, f"{type(error).__name__}: {error}")

    def cancel_all(self) -> None:
        """Cancel all requests of the connection, which releases their permits and memory."""
        for task in list(self._tasks):
            task.cancel()

    async def finished(self) -> None:
        """Wait until no request of the connection is in flight."""
        while self._tasks:
            await asyncio.wait(self._tasks)


class Request(NamedTuple):
    """A client's request, as needed for an error response.

    Attributes:
        request_id: The id that the client chose.
        form: Builds the error response.
        subject: The requested topic or namespace, for the log.
    """

    request_id: int
    form: ErrorForm
    subject: str = ""


class PermitRules(NamedTuple):
    """The lookup permits of a process, which limit the number of concurrent requests.

    Attributes:
        lookups: The semaphore of the permits.
        unanswered: Counts requests that are never answered.
        held_until_answered: False if a permit is released as soon as the request was started,
            as at a real proxy.
    """

    lookups: LookupSemaphore
    unanswered: UnansweredRequests
    held_until_answered: bool = True


class PermittedRequests:
    """Runs a connection's requests, each with a lookup permit, until the connection is lost."""

    def __init__(self, cnx: ServedConnection, rules: PermitRules) -> None:
        self._owner = ref(cnx)
        self._rules = rules
        self.tasks = RequestTasks(weakly(self._answer_unexpected))
        cnx.when_lost(self._lost)

    @property
    def _cnx(self) -> ServedConnection:
        """The connection that owns the permits, as a strong reference."""
        cnx = self._owner()
        if cnx is None:
            raise ReferenceError("a request has outlived its connection")
        return cnx

    @property
    def idle(self) -> bool:
        """True if the connection has no request in flight, and a lookup permit is free."""
        return not (self.tasks or self._rules.lookups.full)

    def permit(self, request: Request, expected_bytes: int | None = 0) -> LookupPermit | None:
        """Acquire a lookup permit for a request, or refuse the request if no permit is free.

        Returns None for a refused request.

        Args:
            request: The request, which is refused if no permit is free.
            expected_bytes: The response's expected share of the connection's budget for responses
                in the making, until the permit is released; None if unknown.
        """
        reservation = self._cnx.responses.reserve(expected_bytes)
        return self._permitted(request, reservation)

    def _permitted(self, request: Request, reservation: ResponseReservation) -> LookupPermit | None:
        permit = self._rules.lookups.try_acquire(self._cnx, reservation)
        if permit is None:
            self.refuse(request, request.form.no_permit)
        elif not self._rules.held_until_answered:
            permit.release()
        return permit

    def start(self, request: Request, work: Work, expected_bytes: int | None = 0) -> bool:
        """Acquire a permit and run a request in a task; return False for a refused request."""
        permit = self.permit(request, expected_bytes)
        if permit is not None:
            self.run(request, permit, work)
        return permit is not None

    def run(self, request: Request, permit: LookupPermit, work: Work) -> None:
        """Run a request with a permit in a task; release the permit at the task's end."""
        self.tasks.start(request.request_id, partial(self._run, request, permit, work))

    def begin(self, request: Request, work: Work, expected_bytes: int | None = 0) -> None:
        """Run a request in a task, acquiring a permit only when the task begins to run.

        A request that waits for nothing is answered and releases its permit before the next begins,
        as at a real broker: so no request of a burst in a single read is refused, unless waiting
        requests hold all permits.
        """
        if self._rules.lookups.full:
            self.refuse(request, request.form.no_permit)
            return
        reservation = self._cnx.responses.reserve(expected_bytes)
        begun = partial(self._begun, request, reservation, work)
        self.tasks.start(request.request_id, begun)

    async def _begun(self, request: Request, reservation: ResponseReservation, work: Work) -> None:
        permit = self._permitted(request, reservation)
        if permit is not None:
            await self._run(request, permit, work)

    async def _run(self, request: Request, permit: LookupPermit, work: Work) -> None:
        with permit:
            try:
                await work()
            except RequestError as error:
                self.refuse(request, error)
            except UnansweredRequestError as error:
                permit.leak()
                self._rules.unanswered.left(request.subject, self._cnx.peer, str(error))

    def refuse(self, request: Request, error: RequestError) -> None:
        """Answer a request with an error."""
        self._cnx.send(request.form.command(request.request_id, error))

    def _answer_unexpected(self, request_id: int, text: str) -> None:
        self._cnx.send(error_command(request_id, pb.UnknownError, text))

    def _lost(self, cnx: ServedConnection) -> None:
        self._rules.lookups.cancel_owner(cnx)
        self.tasks.cancel_all()
        cnx.responses.release_all()
