"""Simulation of replies that slow and fast readers hold in memory, under two admission policies.

A reply holds its bytes of the direct memory limit until its reader has received all of them. A few
readers that take 20 seconds pin most of the limit. How long other requests then wait depends on the
admission order. Arrivals, sizes and hold times are drawn in advance from a seed, so both policies
meet the same requests.

Source: PIP-442, AsyncDualMemoryLimiter (direct memory).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from examples.figures import WaitFigures, wait_figures
from examples.simulation import Ending, VirtualClock, ending_of, require_sound
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireQueueFullError
from limiter.semaphore.async_semaphore import AsyncSemaphore

if TYPE_CHECKING:
    import numpy.typing as npt

    from limiter.permits.account import Waiter
    from limiter.permits.permit import Permit


class Readers(StrEnum):
    """Ways to distribute requests over connections, and to choose the ones that read slowly."""

    OWN = "own"
    """Each request has its own connection, some of them slow: a listing each."""
    CONNECTIONS = "connections"
    """A fixed number of connections send requests repeatedly; certain connections are always slow.
    """
    MIXED = "mixed"
    """A fixed number of connections send requests repeatedly; each is slow at random."""


@dataclass(frozen=True, slots=True)
class Workload:
    """All assumptions of the simulation, such as sizes, hold times and numbers of requests.

    Attributes:
        limit_bytes: The direct memory limit: ``maxTopicListInFlightDirectMemSizeMB=100``.
        max_queue_size: Number of requests that may wait (Pulsar's default).
        timeout_seconds: Longest time that a request waits (Pulsar's default).
        small_bytes: Size of a small reply: 1,000 topics of 34 bytes each.
        large_bytes: Size of a large reply: 100,000 topics of 34 bytes each.
        large_part: Share of requests with a large reply.
        readers: How requests are distributed over connections.
        slow_part: Share of slow requests or connections.
        slow_seconds: Constant hold time of a slow reader's replies.
        fast_mean_seconds: Mean hold time of a fast reader's replies, exponentially distributed.
        offered_load: Mean bytes that would be held if no request waited, divided by the limit.
        connections: Number of equally active connections; not used if each request has its own.
        namespaces: Number of namespaces; connection n lists namespace n modulo this.
        tenants: Number of tenants; namespace n belongs to tenant n modulo this.
        requests: Number of measured requests.
        warm_up_seconds: Time before the measured requests; requests in it do not count.
    """

    limit_bytes: int = 100 * 1024 * 1024
    max_queue_size: int = 10_000
    timeout_seconds: float = 25.0
    small_bytes: int = 34_000
    large_bytes: int = 3_400_000
    large_part: float = 0.1
    readers: Readers = Readers.OWN
    slow_part: float = 0.05
    slow_seconds: float = 20.0
    fast_mean_seconds: float = 0.02
    offered_load: float = 0.75
    connections: int = 1_000
    namespaces: int = 100
    tenants: int = 10
    requests: int = 200_000
    warm_up_seconds: float = 60.0

    @property
    def mean_bytes(self) -> float:
        """The mean size of a reply, in bytes."""
        return self.large_part * self.large_bytes + (1 - self.large_part) * self.small_bytes

    @property
    def mean_hold_seconds(self) -> float:
        """The mean time for which a reply holds memory, in seconds."""
        return self.slow_part * self.slow_seconds + (1 - self.slow_part) * self.fast_mean_seconds

    @property
    def requests_per_second(self) -> float:
        """The arrival rate: offered load * limit / (mean size * mean hold time)."""
        return self.offered_load * self.limit_bytes / (self.mean_bytes * self.mean_hold_seconds)

    def namespace_of(self, connection: int) -> str:
        """Return the ``tenant/namespace`` that a connection lists."""
        namespace = connection % self.namespaces
        return f"tenant-{namespace % self.tenants}/namespace-{namespace}"


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that a seed gives, in order of arrival.

    Attributes:
        arrivals: Seconds since the start; a request does not wait for earlier answers (open loop).
        connections: The number of each request's connection.
        large: Whether each request has a large reply.
        slow: Whether the reader of each request is slow.
        holds: Seconds for which each reply holds memory once its request is admitted.
        measured: Whether each request arrives after the warm-up.
    """

    arrivals: npt.NDArray[np.float64]
    connections: npt.NDArray[np.int64]
    large: npt.NDArray[np.bool_]
    slow: npt.NDArray[np.bool_]
    holds: npt.NDArray[np.float64]
    measured: npt.NDArray[np.bool_]


def requests_of_seed(workload: Workload, seed: int) -> Requests:
    """Draw the requests of a simulation, which arrive at random (Poisson) at the planned rate."""
    chance = np.random.default_rng(seed)
    rate = workload.requests_per_second
    number = workload.requests + round(rate * workload.warm_up_seconds)
    arrivals = np.cumsum(chance.exponential(1 / rate, number))
    connections = chance.integers(workload.connections, size=number)
    if workload.readers is Readers.OWN:
        connections = np.arange(number)
    large = chance.random(number) < workload.large_part
    slow = chance.random(number) < workload.slow_part
    if workload.readers is Readers.CONNECTIONS:
        # Neighbours list different namespaces: slow connections spread over all tenants.
        slow = connections < round(workload.slow_part * workload.connections)
    fast = chance.exponential(workload.fast_mean_seconds, number)
    return Requests(
        arrivals=arrivals,
        connections=connections,
        large=large,
        slow=slow,
        holds=np.where(slow, workload.slow_seconds, fast),
        measured=np.arange(number) >= number - workload.requests,
    )


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Summarized results of a simulation with one seed and one policy.

    Attributes:
        groups: Figures on the waits of groups of requests: all, those with small and with large
            replies, those with fast and with slow readers, and those of idle and of busy
            connections (see ``Run.busy``).
        high_water_part: The most bytes held at the same time, divided by the limit.
        mean_used_part: Mean bytes held while requests were measured, divided by the limit.
    """

    seed: int
    policy: AdmissionPolicy
    groups: dict[str, WaitFigures]
    high_water_part: float
    mean_used_part: float


@dataclass(frozen=True, slots=True)
class Run:
    """Results of a simulation for each of its requests: the wait and the outcome.

    Attributes:
        waits: Seconds until each request was granted or refused.
        busy: Whether, when each request arrived, its connection held or waited for another reply.
        high_water_permits: The largest number of permits held at the same time.
    """

    waits: npt.NDArray[np.float64]
    endings: npt.NDArray[np.int64]
    busy: npt.NDArray[np.bool_]
    high_water_permits: int


def simulate(workload: Workload, requests: Requests, policy: AdmissionPolicy) -> Run:
    """Simulate the requests of a workload with the real limiter.

    Raises:
        LimiterFaultError: The limiter lost a permit or waiter, or exceeded its limit.
    """
    simulation = _Simulation(workload, requests, policy)
    simulation.start()
    simulation.clock.run()
    require_sound(simulation.semaphore, simulation.rules)
    return simulation.result()


class _Simulation:
    """Simulates requests, which arrive, wait for memory, hold the memory and release it."""

    def __init__(self, workload: Workload, requests: Requests, policy: AdmissionPolicy) -> None:
        self.clock = VirtualClock()
        self.rules = AdmissionRules(policy=policy)
        self.semaphore = AsyncSemaphore(
            workload.limit_bytes,
            workload.max_queue_size,
            workload.timeout_seconds,
            self.clock,
            rules=self.rules,
        )
        # Lists: reading an array's element costs ten times as much.
        self._arrivals: list[float] = requests.arrivals.tolist()
        self._connections: list[int] = requests.connections.tolist()
        sizes = np.where(requests.large, workload.large_bytes, workload.small_bytes)
        self._sizes: list[int] = sizes.tolist()
        self._holds: list[float] = requests.holds.tolist()
        self._namespaces = [workload.namespace_of(each) for each in range(workload.namespaces)]
        self._waits = [0.0] * len(self._arrivals)
        self._endings = [Ending.COMPLETED] * len(self._arrivals)
        self._busy = [False] * len(self._arrivals)
        self._open: Counter[int] = Counter()

    def start(self) -> None:
        """Schedule the first arrival, after which each arrival schedules the next one."""
        if self._arrivals:
            self.clock.call_at(self._arrivals[0], self._arrive, 0)

    def _arrive(self, number: int) -> None:
        if number + 1 < len(self._arrivals):
            self.clock.call_at(self._arrivals[number + 1], self._arrive, number + 1)
        connection = self._connections[number]
        self._busy[number] = self._open[connection] > 0
        try:
            waiter = self.semaphore.request(
                self._sizes[number],
                owner=connection,
                namespace=self._namespaces[connection % len(self._namespaces)],
            )
        except PermitAcquireQueueFullError:
            self._endings[number] = Ending.QUEUE_FULL
        else:
            self._open[connection] += 1
            waiter.on_done(partial(self._decided, number, waiter))

    def _decided(self, number: int, waiter: Waiter) -> None:
        now = self.clock.now()
        self._waits[number] = now - self._arrivals[number]
        if waiter.permit is None:
            self._endings[number] = ending_of(waiter.error)
            self._open[self._connections[number]] -= 1
        else:
            self.clock.call_at(now + self._holds[number], self._read, number, waiter.permit)

    def _read(self, number: int, permit: Permit) -> None:
        self._open[self._connections[number]] -= 1
        self.semaphore.release(permit)

    def result(self) -> Run:
        """Return the wait and the outcome of each request."""
        return Run(
            waits=np.array(self._waits),
            endings=np.array(self._endings, dtype=np.int64),
            busy=np.array(self._busy),
            high_water_permits=self.semaphore.statistics().high_water_permits,
        )


def figures_of(
    workload: Workload, requests: Requests, run: Run, *, seed: int, policy: AdmissionPolicy
) -> RunFigures:
    """Summarize the results of a simulation for several groups of requests."""
    masks = {
        "all": requests.measured,
        "small": requests.measured & ~requests.large,
        "large": requests.measured & requests.large,
        "fast": requests.measured & ~requests.slow,
        "slow": requests.measured & requests.slow,
        "idle": requests.measured & ~run.busy,
        "busy": requests.measured & run.busy,
    }
    return RunFigures(
        seed=seed,
        policy=policy,
        groups={name: wait_figures(run.waits[m], run.endings[m]) for name, m in masks.items()},
        high_water_part=run.high_water_permits / workload.limit_bytes,
        mean_used_part=_mean_used(workload, requests, run) / workload.limit_bytes,
    )


def _mean_used(workload: Workload, requests: Requests, run: Run) -> float:
    """Return the mean of the bytes held between the first measured arrival and the last arrival."""
    first = float(requests.arrivals[requests.measured][0])
    last = float(requests.arrivals[-1])
    if last <= first:
        return 0.0
    sizes = np.where(requests.large, workload.large_bytes, workload.small_bytes)
    begin = requests.arrivals + run.waits
    end = np.where(run.endings == Ending.COMPLETED, begin + requests.holds, begin)
    inside = np.clip(end, first, last) - np.clip(begin, first, last)
    return float(np.dot(sizes, inside)) / (last - first)
