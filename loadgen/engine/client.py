"""A client of a load: it sends and times requests, verifies answers and writes rows.

Its group's behaviour decides which requests it sends.

A behaviour awaits answers, or starts requests without waiting. Each request is a row.
"""

from __future__ import annotations

import asyncio
import math
import sys
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.discovery.schedule import Unanswered
from limiter.clock import clock_sleep
from loadgen.engine.connection import (
    EVERYTHING,
    BrokerAddress,
    OnPushed,
    Selection,
)
from loadgen.engine.frames import list_frame, request_frame
from loadgen.engine.link import CLOSED, CUT, Answer, Link, Patience
from loadgen.engine.rows import Failed
from loadgen.engine.writing import RowWriter
from loadgen.plan.clients import Chance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from client.discovery.topics_pattern import TopicsPattern
    from limiter.clock import TimerHandle
    from loadgen.engine.context import TaskContext
    from loadgen.engine.rows import RequestRow
    from loadgen.plan.clients import ClientPlan

ON_TIME_SECONDS = 1e-6
"""Wake-ups early by less than this are rounding, not an early timer."""
MOST_REDIRECTS = 20
"""Most redirects of a lookup, as Java's maxLookupRedirects."""


class LoadClient(RowWriter):
    """One simulated client of a load.

    Mutable state: its connections and its requests under way.

    Bound: the requests that the behaviour starts, limited by the document.

    Args:
        plan: The client's part of the run.
        context: The state that the clients of the task share.

    Attributes:
        random: Returns numbers from 0 to 1; the only random source of the client.
        started: Moment when the client started, in seconds since the agreed start of the run.
        service: Connection to the service URL.
        times_out_late: Whether the client library checks the age of requests only once per timeout.
        on_pushed: Called with a command that answers no request, and its payload.
        on_lost: Called with a lost connection, before that connection's requests fail.
        settled: Set once the client is back or has given up, so that a queued client may start.
        stalled: True while the client reads no bytes.
        ended: True if the client may make no further connection.
    """

    def __init__(self, plan: ClientPlan, context: TaskContext) -> None:
        super().__init__(plan, context)
        self.random: Callable[[], float] = Chance(plan.seed)
        self.started = plan.start or 0.0
        self.service = Link(self, None)
        self.times_out_late = False
        self.on_pushed: OnPushed = lambda command, payload: None
        self.on_lost: Callable[[Link], None] = lambda link: None
        self.settled = asyncio.Event()
        self.stalled = plan.group.read.never and not plan.group.opens
        self.ended = False
        self._brokers: dict[BrokerAddress, Link] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timers: list[TimerHandle] = []
        self._asked = 0
        reason = f"no complete answer within {plan.group.timeout:g} s"
        self._patience = Patience(context.clock, Failed(Unanswered.TIMED_OUT, reason))

    # -- time ---------------------------------------------------------------------------------

    async def until(self, moment: float) -> None:
        """Wait until a moment, in seconds since the run's start.

        Records how much later than that the client woke up.
        """
        # The loop's clock has steps of a millisecond, the run's clock is exact.
        while (wait := moment - self.now()) > ON_TIME_SECONDS:
            await clock_sleep(self.context.clock, wait)
        self.context.lags.setdefault(moment, max(0.0, -wait))

    async def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` on the run's clock."""
        await clock_sleep(self.context.clock, seconds)

    @staticmethod
    async def first(*events: asyncio.Event) -> None:
        """Wait until any of several events is set."""
        waiting = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    async def ticks(self, every: float) -> AsyncIterator[float]:
        """Yield each moment at which the client is to send a request, ``every`` seconds apart.

        Each moment is yielded when due, whether or not earlier requests have ended. Without an
        interval the schedule has one moment.
        """
        for beat in count() if every else range(1):
            due = self.started + beat * every
            if due >= self.context.end - ON_TIME_SECONDS:
                return
            if beat:
                await self.until(due)
            if self.stopping.is_set() and self.now() < self.context.end:
                return  # The run was ended early; otherwise the wake-up was only late.
            yield due

    # -- work ---------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine beside the client's behaviour; it is cancelled when the client ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_ended)
        return task

    def _spawned_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.context.failures.append(error)

    def back(self) -> None:
        """Record that the client is back, which means that it has been served completely.

        Calls after the first one do nothing.
        """
        if not self.settled.is_set():
            self.event("back", self.now() - self.started)
            self.settled.set()
            if self.group.read.never:
                self._stall(True)

    def gave_up(self, failed: Failed) -> None:
        """Record that the client has given up, unless it had been served completely before."""
        if not self.settled.is_set():
            lost = isinstance(failed.failure, Unanswered)
            self.event("lost" if lost else "refused", text=failed.reason)
            self.settled.set()

    # -- requests -----------------------------------------------------------------------------

    def to(self, broker: BrokerAddress) -> Link:
        """Return the client's link to a broker; behind a proxy each broker has its own tunnel."""
        if not broker.through_proxy and broker.netloc == self.context.connector.service:
            return self.service
        if broker not in self._brokers:
            self._brokers[broker] = Link(self, broker)
        return self._brokers[broker]

    async def request(  # noqa: PLR0913 - parts of one row
        self,
        link: Link,
        operation: str,
        frame: Callable[[int], bytes],
        *,
        due: float | None = None,
        selection: Selection = EVERYTHING,
        request_id: int | None = None,
        item: str = "",
    ) -> Answer:
        """Send a request, connecting first if needed, and return the answer or the failure.

        Args:
            link: The link to the server, which connects if necessary.
            operation: The name of the operation in the row that records the request.
            frame: Returns the frame for a request id.
            due: The scheduled moment; None for a request without a schedule: the current moment.
            selection: The names that a list request asks for.
            request_id: The id that the client itself chooses, such as a message's sequence id; by
                default the connection chooses.
            item: The subject of the request in the row, such as a topic.
        """
        row, answer = self.begin_row(operation, due, item), CUT
        try:
            answer = await self._answered(link, row, frame, selection, request_id)
        finally:
            self.end_row(row, answer.failed)
        return answer

    async def _answered(
        self,
        link: Link,
        row: RequestRow,
        frame: Callable[[int], bytes],
        selection: Selection,
        request_id: int | None = None,
    ) -> Answer:
        failure = await link.ready()
        connection = link.connection
        if failure is not None or connection is None:
            return Answer(failed=Failed(Unanswered.UNREACHABLE, failure or CLOSED))
        if request_id is None:
            request_id = self._asked = self._asked + 1
        row.sent = self.now()
        if row.due >= self.context.warm_up:
            self.context.totals.started += 1
        waiting = connection.request(request_id, frame(request_id), row, selection)
        self._patience.add(waiting, link.patience_end())
        try:
            found = await waiting
        finally:
            connection.forget(request_id)
        return Answer(failed=found) if isinstance(found, Failed) else Answer(found)

    async def list_topics(
        self,
        *,
        pattern: str | None = None,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
        names_wanted: int = 0,
        matching: TopicsPattern | None = None,
        due: float | None = None,
    ) -> Answer:
        """List the topics in the client's namespace; the answer's value is a :class:`Told`."""
        chosen = tuple(sorted(properties.items())) if properties else ()
        key = f"{pattern or ''} {[*chosen]}" if pattern or chosen else ""
        frame = lambda number: list_frame(number, self.namespace, pattern, topics_hash, chosen)  # noqa: E731
        selection = Selection(key, topics_hash, names_wanted, matching)
        return await self.request(
            self.service, "list", frame, due=due, selection=selection, item=key
        )

    async def look_up(self, topic: str, due: float | None = None) -> Answer:
        """Ask which broker serves a topic or pattern; the answer's value is a BrokerAddress.

        Redirects are followed as in official clients, each with a row.
        """
        link, authoritative = self.service, False
        for _ in range(1 + MOST_REDIRECTS):
            command = pb.CommandLookupTopic(topic=topic, authoritative=authoritative)
            frame = request_frame(command)
            answer = await self.request(link, "lookup", frame, due=due, item=topic)
            if answer.failed is not None:
                return answer
            found = answer.value
            tls = self.context.service_url.startswith("pulsar+ssl:")
            url = found.brokerServiceUrlTls if tls else found.brokerServiceUrl
            broker = BrokerAddress(url, found.proxy_through_service_url)
            if found.response != pb.CommandLookupTopicResponse.Redirect:
                return Answer(broker)
            link, authoritative, due = self.to(broker), found.authoritative, None
        reason = f"a lookup was redirected more than {MOST_REDIRECTS} times"
        return Answer(failed=Failed(pb.ServiceNotReady, reason))

    async def open(
        self, topic: str, operation: str, frame: Callable[[int], bytes], item: str = ""
    ) -> tuple[Link, Answer]:
        """Look up a topic's broker and send it a request; return the link to it and the answer."""
        found = await self.look_up(topic)
        if found.failed is not None:
            return self.service, found
        link = self.to(found.value)
        return link, await self.request(link, operation, frame, item=item)

    async def names_now(self, pattern: str | None) -> set[str] | None:
        """List the topics of the client's namespace for a check; no row records this request.

        Args:
            pattern: The full topics pattern; None for all topics.

        Returns:
            The topic names; None if no answer arrived.
        """
        row = self._row("check", -math.inf)  # Due before all counted requests.
        frame = partial(list_frame, namespace=self.namespace, pattern=pattern)
        selection = Selection("check", names_wanted=sys.maxsize)
        answer = await self._answered(self.service, row, frame, selection)
        return None if answer.failed is not None else set(answer.value.names)

    # -- connections --------------------------------------------------------------------------

    @property
    def links(self) -> list[Link]:
        """The client's links to the service URL and to all brokers."""
        return [self.service, *self._brokers.values()]

    def connection_lost(self, link: Link, reason: str) -> None:
        """Record the loss of a connection; to be called before its requests fail."""
        self.event("connection-lost", text=reason)
        self.on_lost(link)

    def _arm(self) -> None:
        """Set timers that make the client drop its connections or stop reading from them."""
        clock, read, now = self.context.clock, self.group.read, self.now()
        moments: list[tuple[float, Callable[[], None]]] = [
            (moment - now, self.drop) for moment in self.plan.drops if moment >= self.started
        ]
        if read.stall:
            moments.append((read.stall_at, partial(self._stall, True)))
            moments.append((read.stall_at + read.stall, partial(self._stall, False)))
        for wait, action in moments:
            self._timers.append(clock.call_at(clock.now() + max(0.0, wait), action))

    def drop(self) -> None:
        """Close all connections, as the scenario plans; the client may connect again."""
        for link in self.links:
            link.drop()

    def _stall(self, stalled: bool) -> None:
        self.stalled = stalled
        for link in self.links:
            if link.connection is not None:
                link.connection.stall(stalled)

    # -- the task's side ----------------------------------------------------------------------

    async def run(self) -> None:
        """Run the behaviour of the client's group, beginning now."""
        self.context.totals.clients[f"{self.group.name} started"] += 1
        self._arm()
        try:
            await self.group.client(self)
        finally:
            self.settled.set()

    async def end(self) -> None:
        """Cancel all requests under way, and close all connections for good."""
        self.ended = True
        self.stopping.set()
        self._patience.close()
        for timer in self._timers:
            timer.cancel()
        for link in self.links:
            link.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
