"""Runs a scenario in virtual time: the executor that has neither sockets nor processes."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from limiter.clock import clock_sleep
from loadgen.errors import LoadgenError, UsageError
from loadgen.scenarios.registry import kind_of
from loadgen.stuck_peers.task import BesidePeersTask
from loadgen.tasks.ground import Ground
from loadgen.tasks.task import TaskPlan
from loadgen.virtual.links.network import LOOPBACK, Network
from loadgen.virtual.loop import VirtualLoop
from loadgen.virtual.sampling import Sampler, facts_of
from loadgen.virtual.servers import VirtualServers, service_url
from loadgen.virtual.service_times import SERVICE_TIMES
from loadgen.virtual.sockets import (
    VirtualCloseWatch,
    VirtualConnector,
    VirtualRunTime,
    agreed,
)
from loadgen.virtual.stopwatches import stopped_watches
from server.errors import ConfigError, StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from loadgen.analysis.thresholds import Threshold
    from loadgen.clients.records import Look, TaskReport
    from loadgen.cluster import ClusterPlan
    from loadgen.scenario import Scenario
    from loadgen.virtual.links.network import Link
    from loadgen.virtual.service_times import ServiceTimes

KINDS = ("discovery", "storm", "stuck", "lookups")
"""The kinds of scenarios whose clients stand on a Ground, and need no HTTP and no messages."""
MOST_TOPICS = 20_000_000
_REMEDY = "measure over sockets, with --executor process of `loadgen run` or `loadgen find-limit`"
_OF_PROCESSES = ("resident.max", "resident.rise", "cpu.seconds", "again.seconds")
_SETTLE_SECONDS = 3.0


@dataclass(frozen=True)
class VirtualRun:
    """A finished run in virtual time.

    Attributes:
        reports: As those of tasks; there is one.
        watch: What the servers said of themselves while it ran.
        servers: Their versions and settings.
        busy_seconds: Virtual time that each server's processor worked.
        events: Timers of the loop that ran.
        real_seconds: How long it took in real time, without making the topics.
    """

    reports: list[TaskReport]
    watch: Sampler
    servers: dict[str, Any]
    busy_seconds: dict[str, float]
    events: int
    real_seconds: float

    @property
    def requests_per_second(self) -> float:
        """Requests simulated in a second of real time."""
        requests: int = sum(report.rows.num_rows for report in self.reports)
        return requests / self.real_seconds


def require_virtual(
    scenario: Scenario, cluster: ClusterPlan, thresholds: Iterable[Threshold] = ()
) -> None:
    """Refuse what does not run in virtual time, or would not be measured there.

    Raises:
        UsageError: A scenario of this kind, servers that are restarted, too many topics, or one of
            the thresholds.
    """
    if scenario.kind not in KINDS:
        raise UsageError(
            f"{scenario.kind} does not run in virtual time ({', '.join(KINDS)} do): {_REMEDY}"
        )
    if cluster.events:
        raise UsageError(
            f"no server is restarted in virtual time: leave out cluster.events, or {_REMEDY}"
        )
    if cluster.topics.topics > MOST_TOPICS:
        raise UsageError(
            f"cluster.topics: {cluster.topics.topics:,} topics; virtual time keeps at most "
            f"{MOST_TOPICS:,} in memory: use fewer, or {_REMEDY}"
        )
    for each in thresholds:
        if each.measure.name in _OF_PROCESSES:
            raise UsageError(
                f"threshold {each.text!r} is of a process, which virtual time has none of: leave "
                f"it out, or {_REMEDY}"
            )


def run_in_virtual_time(
    scenario: Scenario,
    cluster: ClusterPlan,
    *,
    times: ServiceTimes | None = None,
    link: Link = LOOPBACK,
    on_begun: Callable[[Look], None] = lambda look: None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> VirtualRun:
    """Run a scenario against a cluster, both in this process and without sockets.

    Args:
        scenario: Its service URL is not looked at.
        cluster: The servers and their topics.
        times: What the servers' work takes; None is what the cluster says.
        link: Between clients and servers.
        on_begun: Given a look at the run, for any thread: its seconds, and the totals by now.
        may_go_on: Asked now and then; when it says no, the run is cut.

    Raises:
        CutError: It was cut.
        UsageError: See :func:`require_virtual`.
        LoadgenError: A server refuses its configuration.
    """
    require_virtual(scenario, cluster)
    times = times or SERVICE_TIMES[cluster.service_times]
    with (
        stopped_watches(),
        uncollected(),
        _interruptible(may_go_on) as look,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(look)) as runner,
    ):
        try:
            return runner.run(_run(scenario, cluster, times, link, on_begun))
        except (StartError, ConfigError) as error:
            raise LoadgenError(f"the servers cannot be started: {error}") from None


@contextmanager
def _interruptible(may_go_on: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C end the loop between two events, so that no task has it for its own error.

    asyncio's own handler would cancel one task, and the others would end in virtual time.
    """
    if threading.current_thread() is not threading.main_thread():
        yield may_go_on
        return
    interrupts: list[int] = []

    def look() -> bool:
        goes_on = may_go_on()
        if interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        return goes_on

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, lambda number, _: interrupts.append(number)) for each in numbers]
    try:
        yield look
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage while a block runs, and for all of it behind the block.

    A hundred thousand connections that live are long to look at, a sixth of a storm's time; what
    is left in circles meanwhile is one or two hundredths of the memory.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        if was_enabled:
            gc.enable()


async def _run(
    scenario: Scenario,
    cluster: ClusterPlan,
    times: ServiceTimes,
    link: Link,
    on_begun: Callable[[Look], None],
) -> VirtualRun:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    network = Network(loop, link)
    async with VirtualServers(cluster, loop, network, times) as servers:
        begun = time.perf_counter()
        connector = VirtualConnector(network, servers.clock, servers.port)
        ground = Ground(servers.clock, lambda: VirtualRunTime(loop.time), lambda: connector)
        scenario = scenario.model_copy(update={"service_url": service_url(cluster)})
        plan: TaskPlan[Any] = TaskPlan(scenario=scenario, task=0, tasks=1, loopback=False)
        task = kind_of(scenario).new_task(plan, agreed, ground)
        if isinstance(task, BesidePeersTask):
            task.close_watch = VirtualCloseWatch(servers.clock)
        sampler = Sampler(servers.services, servers.clock, task.time)
        sampler.start()
        on_begun(lambda: (task.time.seconds() if task.time.t0 else 0.0, task.context.counters))
        report = await task.run()
        # The servers learn that all clients have left: now their books have to balance.
        await clock_sleep(servers.clock, _SETTLE_SECONDS)
        sampler.stop()
        facts = {name: asdict(facts_of(each)) for name, each in servers.services.items()}
        real_seconds = time.perf_counter() - begun
    busy = {name: each.busy_seconds for name, each in servers.processors.items()}
    # What this process worked is no share of virtual time: there is no generator to be too slow.
    report = replace(report, facts=replace(report.facts, cpu_seconds=0.0))
    return VirtualRun([report], sampler, facts, busy, loop.events, real_seconds)
