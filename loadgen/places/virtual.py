"""Runs of scenarios in virtual time, without sockets and server processes."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limiter.clock import clock_sleep
from loadgen.engine.context import RunTime
from loadgen.engine.control import Control
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.launcher import known_namespaces
from loadgen.places.sampling import SAMPLE_SECONDS, Samples, is_kept, other_labels
from loadgen.places.shocks import too_early
from loadgen.places.task import Task, TaskPlan
from loadgen.results.tables import verify
from loadgen.results.vocabulary import PROCESSOR_SECONDS
from loadgen.virtual.links.network import Network, VirtualConnector
from loadgen.virtual.loop import EPOCH_MS, VirtualClock, VirtualLoop
from loadgen.virtual.servers import VirtualServers, service_url, undisturbed
from loadgen.workers import signals_taken
from proto.version import FLOODGATE_VERSION
from server.errors import ConfigError, StartError
from server.server_info import INFO_KEYS, server_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.documents.model import Document, Shock
    from loadgen.engine.rows import Rows
    from loadgen.engine.totals import Totals
    from loadgen.places.task import TaskFacts

MOST_TOPICS, MOST_SIMULATED = 20_000_000, 100_000
LONGEST_INTERVAL_SECONDS = 4_096 * SAMPLE_SECONDS
_SAMPLES_AT_ONE_PACE = 2_000
_REMEDY = "measure over sockets, with --place processes"
_OF_PROCESSES = re.compile(r"\b(?:broker|proxy)\.(?:resident|cpu|descriptors)\b")
_OF_THE_SIMULATOR = ("process_", "floodgate_event_loop")
"""Metrics of the simulating process, which say nothing about a simulated server."""
_SETTLE_SECONDS = 3.0


@dataclass(frozen=True)
class VirtualRun:
    """The result of a run in virtual time.

    Attributes:
        facts: The measurements of the run's only task.
        rows: The rows of requests and events.
        samples: The samples of the servers, on a clock that shows ``t0`` when the run begins.
        servers: The version and settings of each server, by role.
    """

    facts: TaskFacts
    rows: Rows
    samples: Samples
    t0: float
    servers: dict[str, Any]


def require_virtual(document: Document) -> None:
    """Check that a scenario can run, and its expectations be measured, in virtual time.

    Raises:
        UsageError: The scenario has a behaviour, a shock of servers or links, or an expectation of
            processes that has no simulation; or its topics are in files, or too many.
    """
    for obstacle in (*_of_clients(document), *_of_servers(document)):
        raise UsageError(obstacle)


def _of_clients(document: Document) -> Iterator[str]:
    clients = sum(group.count for group in document.clients)
    if clients > MOST_SIMULATED:
        yield f"{clients:,} clients; virtual time keeps at most {MOST_SIMULATED:,}: use fewer"
    for group in document.clients:
        if not group.virtual:
            yield f"group {group.name}: {group.do} does not run in virtual time: {_REMEDY}"
    for text in filter(_OF_PROCESSES.search, document.expect):
        yield f"expectation {text!r} needs a process, which virtual time lacks: {_REMEDY}"


def _of_servers(document: Document) -> Iterator[str]:
    for shock in document.shocks:
        if shock.anew is None and shock.restart is None:
            said = "servers are only restarted in virtual time, and clients begin anew"
            yield f"{said}: leave out {shock.words}, or {_REMEDY}"
    topics = document.topics
    if topics.corpus is not None:
        yield "topics.corpus: virtual time makes the topics of its servers; leave it out"
    if topics.made and sum(topics.sizes) > MOST_TOPICS:
        yield (
            f"topics: {sum(topics.sizes):,} topics; virtual time keeps at most {MOST_TOPICS:,} in "
            f"memory: use fewer, or {_REMEDY}"
        )


def run_in_virtual_time(
    document: Document,
    *,
    run: str = "",
    on_begun: Callable[[Callable[[], tuple[float, Totals]]], None] = lambda look: None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> VirtualRun:
    """Run a scenario with servers and clients in this process, without sockets.

    Args:
        document: The scenario; its servers already include the keys of an operator's files.
        run: The name of the run.
        on_begun: Called with a thread-safe function that returns the run's seconds and totals.
        may_go_on: Polled during the run; if it returns False, the run is cut.

    Raises:
        CutError: The run was cut, because ``may_go_on`` returned False.
        UsageError: The scenario cannot run in virtual time; see :func:`require_virtual`.
        LoadgenError: A server refuses its configuration.
    """
    require_virtual(document)
    with (
        undisturbed(),
        _interruptible(may_go_on) as look,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(look)) as runner,
    ):
        try:
            return runner.run(_simulated(document, run, on_begun))
        except (StartError, ConfigError) as error:
            raise LoadgenError(f"the servers cannot be started: {error}") from None


async def _simulated(
    document: Document,
    run: str,
    on_begun: Callable[[Callable[[], tuple[float, Totals]]], None],
) -> VirtualRun:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    network, moments = Network(loop), RunTime(loop.time, wall=loop.time)
    clock, restarts = network.clock, [each for each in document.shocks if each.restart]
    topics = document.topics.plan() if document.topics.made else None
    async with VirtualServers(document.servers, topics, network) as servers:
        namespaces = servers.namespaces or known_namespaces(document.topics)
        url = service_url(document.servers)
        plan = TaskPlan.share(document, namespaces, service_url=url, loopback=False, run=run)
        restarting: list[asyncio.Task[None]] = []

        def begun(t0: float) -> None:
            for each in restarts:
                restart = servers.restart(str(each.restart), t0 + each.at, each.seconds)
                restarting.append(loop.create_task(restart))

        task = Task(
            plan, Control(begun), connector=VirtualConnector(network), time=moments, clock=clock
        )
        samples = Samples(servers.running)
        sampling = loop.create_task(_sample(servers, clock, samples))
        totals = task.context.totals
        on_begun(lambda: (moments.seconds() if moments.t0 else 0.0, totals))
        facts, rows = await task.run()
        await _all_restarted(restarts, restarting, clock.now() - moments.t0)
        # Time for the servers to notice that all clients have left: then the books have to balance.
        await clock_sleep(clock, _SETTLE_SECONDS)
        sampling.cancel()
        _look(servers, clock, samples)
        samples.seen_at_the_end.update(servers.running)
    for row in rows.requests:
        verify(row)
    # This process's work is no share of virtual time: no generator can be too slow.
    facts = facts.model_copy(update={"cpu_seconds": 0.0, "t0_epoch_seconds": EPOCH_MS / 1000})
    return VirtualRun(
        facts,
        rows,
        samples,
        moments.t0,
        {name: _facts_of(each) for name, each in servers.running.items()},
    )


async def _all_restarted(
    restarts: Sequence[Shock], restarting: Sequence[asyncio.Task[None]], ended: float
) -> None:
    """Wait until each server that a shock restarts is running again.

    Raises:
        LoadgenError: The run ended before a planned restart.
    """
    for shock in restarts:
        if shock.at > ended:
            for each in restarting:
                each.cancel()
            raise LoadgenError(too_early(shock))
    await asyncio.gather(*restarting)


async def _sample(servers: VirtualServers, clock: VirtualClock, samples: Samples) -> None:
    """Sample the servers' metrics four times a second of virtual time, less often in long runs."""
    interval = SAMPLE_SECONDS
    for count in itertools.count(1):
        _look(servers, clock, samples)
        if count % _SAMPLES_AT_ONE_PACE == 0:
            interval = min(2 * interval, LONGEST_INTERVAL_SECONDS)
        await clock_sleep(clock, interval)


def _look(servers: VirtualServers, clock: VirtualClock, samples: Samples) -> None:
    for process, service in servers.running.items():
        told = dict(_told(service.registry))
        told[PROCESSOR_SECONDS] = servers.processors[process].spent_seconds
        samples.add(process, clock.now(), told)


@contextmanager
def _interruptible(may_go_on: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C end the event loop between two events instead of inside an asyncio task.

    asyncio's own handler would cancel one task only, and the others would continue to their end.
    """
    interrupts: list[int] = []

    def look() -> bool:
        goes_on = may_go_on()
        if interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        return goes_on

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)

    with signals_taken(interrupt, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield look


def _told(registry: Any) -> Iterator[tuple[str, float]]:  # noqa: ANN401 - of the metrics library
    for family in registry.collect():
        if family.name.startswith(_OF_THE_SIMULATOR):
            continue
        for sample in family.samples:
            kept = is_kept(sample.name) and not sample.name.endswith("_created")
            if kept and not math.isnan(sample.value):
                labels = ((name, _escaped(text)) for name, text in sample.labels.items())
                yield sample.name + other_labels(labels), float(sample.value)


def _escaped(text: str) -> str:
    """Escape the value of a label as Prometheus's text format requires."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _facts_of(service: Any) -> dict[str, Any]:  # noqa: ANN401 - broker or proxy
    """Return a simulated server's version and settings, in the form that HTTP would return."""
    info = server_info(service.config)
    return {"version": FLOODGATE_VERSION, "settings": {key: info[key] for key in INFO_KEYS}}
