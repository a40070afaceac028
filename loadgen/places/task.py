"""One task of a run: it connects its clients, starts them when agreed, and lets them finish.

A task runs on an event loop of its own, in a worker process, in a Spark task or in virtual time.
These places differ only in how the start is agreed and in the connections' transport.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections import defaultdict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from limiter.clock import clock_sleep, deadline
from loadgen.documents.model import Document, Topics
from loadgen.engine.client import ON_TIME_SECONDS, LoadClient
from loadgen.engine.connecting import CONNECTING_AT_ONCE
from loadgen.engine.context import TaskContext
from loadgen.engine.control import REPORT_SECONDS, Control, ControlAddress
from loadgen.engine.task_watch import TaskWatch
from loadgen.plan.arrivals import Concurrency
from loadgen.plan.clients import ClientPlan, Namespace, drop_moments, source_address, start_moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.engine.rows import Rows
    from loadgen.plan.group import Group


_PHASES = ("warm-up", "measure", "hold")


class TaskPlan(BaseModel):
    """The input of a task: the scenario, and which of the run's clients belong to the task.

    The task has every ``tasks``-th client of the run, beginning with number ``task``.

    The plan is sent as JSON, with only the parts of the run that the task's clients need.

    Attributes:
        namespaces: Namespaces of the task's clients, by their index in the whole run.
        of_namespaces: Number of namespaces in the whole run.
        loopback: Whether the server is on the loopback, so that many clients need many source
            addresses.
        control: The address of the driver; None for a task without a driver.
        directory: The directory to which the task writes its rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    document: Document
    namespaces: dict[int, Namespace]
    of_namespaces: int
    task: int = 0
    tasks: int = 1
    loopback: bool = True
    service_url: str = ""
    admin_url: str = ""
    control: ControlAddress | None = None
    directory: str = ""
    run: str = ""

    @classmethod
    def share(
        cls,
        document: Document,
        namespaces: Sequence[Namespace],
        **more: Any,  # noqa: ANN401 - other attributes
    ) -> Self:
        """Return the plan of one task of a run, with only the namespaces that its clients use."""
        # Leaves out the document's namespaces, up to a hundred thousand: the plan has its own.
        document = document.model_copy(update={"topics": Topics(corpus=".")})
        plan = cls(document=document, namespaces={}, of_namespaces=len(namespaces), **more)
        own = {place for group in document.clients for _, place in plan._places(group)}
        return plan.model_copy(update={"namespaces": {each: namespaces[each] for each in own}})

    def _places(self, group: Group) -> Iterator[tuple[int, int]]:
        """Yield each client of the task: its index in the group, and the index of its namespace."""
        begin, end = group.namespaces or (0, self.of_namespaces)
        first = self._first_client(group)
        for index in range((self.task - first) % self.tasks, group.count, self.tasks):
            yield index, begin + group.namespace_of(index, end - begin)

    def _first_client(self, group: Group) -> int:
        groups = self.document.clients
        return sum(each.count for each in groups[: groups.index(group)])

    def clients(self) -> Iterator[ClientPlan]:
        """Yield a plan for each client of the task."""
        document = self.document
        for number, group in enumerate(document.clients):
            starts = start_moments(group, document.seed + number)
            anew = [each.at for each in document.shocks if each.anew == group.name]
            first = self._first_client(group)
            for index, place in self._places(group):
                client = first + index
                # A mixing step more than seeds that only count up would have.
                seed = random.Random(document.seed * 1_000_003 + client).getrandbits(63)
                yield ClientPlan(
                    number=client,
                    index=index,
                    group=group,
                    namespace=self.namespaces[place],
                    start=starts[index] if index < len(starts) else None,
                    seed=seed,
                    drops=(*drop_moments(group, document.phases.end, seed), *anew),
                    source_address=source_address(client) if self.loopback else None,
                )


class TaskFacts(BaseModel):
    """Measurements that a task makes of itself, such as delays and processor time.

    Attributes:
        start_error_seconds: The longest delay between a moment at which clients are to start and
            the first client's start: how late the task itself was.
        client_start_error_seconds: The longest delay of any client's first request. With 500
            clients due at the same moment the last one waits for the rest, and for the processor if
            a server that answers the first requests shares it.
        t0_epoch_seconds: The agreed start on the driver's wall clock.
        clock_ahead_seconds: How far the wall clock of the task's host is ahead of the driver's,
            which is corrected; known within ``clock_doubt_seconds``.
        interrupted: Whether the task ended early, so that requests under way have no row.
        requests: Number of requests that ended.
        moments: Number of scheduled moments that clients awaited.
        lag_p99_seconds: 99th percentile of the delays of these moments.
        loop_lag_p99_seconds: 99th percentile of the event loop's delays, probed twenty times a
            second.
        cpu_seconds: Processor time of the process, in ``measured_seconds`` since the start.
        descriptors: The largest number of open files of the process.
    """

    task: int
    clients: int
    start_error_seconds: float = 0.0
    client_start_error_seconds: float = 0.0
    t0_epoch_seconds: float = 0.0
    clock_ahead_seconds: float = 0.0
    clock_doubt_seconds: float = 0.0
    interrupted: bool = False
    moments: int = 0
    lag_p99_seconds: float = 0.0
    loop_lag_p99_seconds: float = 0.0
    loop_lag_max_seconds: float = 0.0
    cpu_seconds: float = 0.0
    measured_seconds: float = 0.0
    descriptors: int = 0
    requests: int = 0


class TaskResult(NamedTuple):
    """The result of a task: its measurements, and the rows of requests and events."""

    facts: TaskFacts
    rows: Rows


class Task:
    """A task of a run, which runs a share of the clients on one event loop.

    Mutable state: the clients, and the progress of the run.

    Args:
        plan: The task's share of the run.
        control: The task's end of the control channel to the driver.
        ground: Connector, time and clock to use instead of those for sockets.
    """

    def __init__(
        self,
        plan: TaskPlan,
        control: Control,
        **ground: Any,  # noqa: ANN401 - fields of TaskContext
    ) -> None:
        self.plan = plan
        self.context = TaskContext(
            plan.service_url,
            admin_url=plan.admin_url,
            warm_up=plan.document.phases.warm_up,
            end=plan.document.phases.end,
            **ground,
        )
        self._control = control
        self._clients = [LoadClient(each, self.context) for each in plan.clients()]
        self._running: dict[asyncio.Task[None], LoadClient] = {}
        self._places: defaultdict[str, deque[LoadClient]] = defaultdict(deque)
        self._stop = asyncio.Event()
        self._facts = TaskFacts(task=plan.task, clients=len(self._clients))
        self._watch = TaskWatch(self.context.clock, self.context.time)

    async def run(self) -> TaskResult:
        """Connect the clients, agree on the start with the driver, and run the clients to the end.

        Raises:
            LoadgenError: The server's host name is unknown, or this process may not open enough
                files.
            UsageError: The credentials cannot be read.
        """
        self._control.listen(self.interrupt)
        reporting = asyncio.get_running_loop().create_task(self._report_progress())
        try:
            await self._connect_all()
            await self._agree_on_start()
            if not self._facts.interrupted:
                self._watch.begin()
                await self._course()
            watched = self._watch.end(list(self.context.lags.values()))
        finally:
            await self._end()
            reporting.cancel()
        if self.context.failures:
            raise self.context.failures[0]
        requests, first = self.context.rows.requests, dict[int, float]()
        for row in requests:
            if row.sent is not None:
                first.setdefault(row.client, row.sent - row.due)
        watched["client_start_error_seconds"] = max([0.0, *first.values()])
        watched["requests"] = sum(row.outcome is not None for row in requests)
        return TaskResult(self._facts.model_copy(update=watched), self.context.rows)

    def interrupt(self) -> None:
        """End the run early: no new request begins.

        A request that is still under way after the drain has no row.
        """
        self._facts.interrupted = True
        self._stop.set()

    # -- before the start ---------------------------------------------------------------------

    async def _connect_all(self) -> None:
        """Connect the clients whose start is scheduled, before the run starts.

        A client that cannot connect tries again with its first request.
        """
        plan = self.plan
        # The task's most simultaneous connections, if the server is a proxy.
        connections = -(-plan.document.connections // plan.tasks)
        await self.context.connector.resolve(plan.service_url, connections)
        early = iter([each for each in self._clients if each.plan.start is not None])

        async def connect() -> None:
            for client in early:
                await client.group.ready(client)

        # A task for each client would wait for one of the connector's places: ending 50,000 such
        # waits takes many seconds, and a cut run has one.
        await asyncio.gather(*(connect() for _ in range(CONNECTING_AT_ONCE)))
        # Events of connecting are no events of the run.
        self.context.rows.events.clear()

    async def _agree_on_start(self) -> None:
        # Collecting the objects that exist by now could block the loop during the run.
        if gc.isenabled():
            gc.collect()
            gc.freeze()
        start = await self._control.start(self.context.time.wall)
        self.context.time.agree(start.own_epoch_seconds)
        self._facts.t0_epoch_seconds = start.epoch_seconds
        self._facts.clock_ahead_seconds = start.ahead_seconds
        self._facts.clock_doubt_seconds = start.doubt_seconds

    # -- from the start to the end --------------------------------------------------------------

    async def _course(self) -> None:
        """Start all clients on time, and wait for the end of each phase of the run."""
        phases, loop = self.plan.document.phases, asyncio.get_running_loop()
        beside = [loop.create_task(each) for each in (self._start_all(), self._end_when_settled())]
        try:
            ends = phases.warm_up, phases.warm_up + phases.measure, phases.end
            for phase, begin, end in zip(_PHASES, (0.0, *ends), ends, strict=False):
                if end > begin:
                    self.context.totals.phase = phase
                    await self._pass_by(end)
        finally:
            for each in beside:
                each.cancel()
        await self._drain()

    async def _pass_by(self, moment: float) -> None:
        """Wait until a moment of the run, or until the run is ended early."""
        if (left_seconds := moment - self.context.time.seconds()) > 0:
            with suppress(TimeoutError):
                async with deadline(self.context.clock, left_seconds):
                    await self._stop.wait()

    async def _sleep_until(self, moment: float) -> None:
        if (left_seconds := moment - self.context.time.seconds()) > ON_TIME_SECONDS:
            await clock_sleep(self.context.clock, left_seconds)

    async def _start_all(self) -> None:
        """Start each client at its scheduled moment.

        Clients without a scheduled start wait until another client has ended.
        """
        for client in self._clients:
            if client.plan.start is None:
                self._places[client.group.name].append(client)
        timed = [each for each in self._clients if each.plan.start is not None]
        lags, facts = self.context.lags, self._facts
        for client in sorted(timed, key=lambda each: each.started):
            await self._sleep_until(client.started)
            late = max(0.0, self.context.time.seconds() - client.started)
            if late <= lags.setdefault(client.started, late):
                facts.start_error_seconds = max(facts.start_error_seconds, late)
            self._start(client)

    def _start(self, client: LoadClient) -> None:
        task = asyncio.get_running_loop().create_task(client.run())
        self._running[task] = client
        task.add_done_callback(self._ended)
        if isinstance(client.group.arrive, Concurrency):
            client.spawn(self._make_place(client))

    async def _make_place(self, client: LoadClient) -> None:
        """Wait until a client is served or fails, start its group's next client, and end it."""
        await client.settled.wait()
        waiting = self._places[client.group.name]
        if waiting and not self._stop.is_set():
            following = waiting.popleft()
            following.started = self.context.time.seconds()
            self._start(following)
        client.stopping.set()
        for link in client.links:
            link.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.context.failures.append(error)
            self._stop.set()

    async def _end_when_settled(self) -> None:
        """End the run early once every client has been served completely or has given up."""
        document = self.plan.document
        if document.phases.hold or any(each.lasts for each in document.clients):
            return
        for client in self._clients:
            await client.settled.wait()
        await self._sleep_until(document.phases.warm_up)
        self._stop.set()

    async def _drain(self) -> None:
        """Begin no new requests, and wait for those under way, at most for the drain's length."""
        self.context.totals.phase = "drain"
        self._stop.set()
        for client in self._clients:  # Within one turn: in the next a client could begin a request.
            client.stopping.set()
        with suppress(TimeoutError):
            async with deadline(self.context.clock, self.plan.document.phases.drain):
                await asyncio.gather(*(client.finish() for client in self._clients))

    async def _end(self) -> None:
        for task in self._running:
            task.cancel()
        for client in self._clients:
            await client.end()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._control.report(self.context.totals)
        if gc.isenabled():
            gc.unfreeze()

    async def _report_progress(self) -> None:
        while True:
            self._control.report(self.context.totals)
            await clock_sleep(self.context.clock, REPORT_SECONDS)
