"""Replies of two sizes to readers of two speeds: the load that finds out what an order costs.

A reply holds its bytes of the direct memory limit until its reader has it. A few readers that take
20 seconds pin most of the limit; how long everybody else waits then depends on the order in which
requests are admitted. Arrivals, sizes and hold times are drawn beforehand from a seed, so that
both policies meet exactly the same requests.

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
    """The connections, and which of them read slowly."""

    OWN = "own"
    """Each request is of a connection of its own, a part of which is slow: one listing each."""
    CONNECTIONS = "connections"
    """A fixed number of connections ask again and again; certain ones are slow, always."""
    MIXED = "mixed"
    """A fixed number of connections ask again and again; each is slow at times, by chance."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that is assumed. Units: bytes, seconds, requests.

    Attributes:
        limit_bytes: 100 MB, as ``maxTopicListInFlightDirectMemSizeMB=100`` means it.
        max_queue_size: Places for waiting requests (Pulsar's default).
        timeout_seconds: How long a request may wait (Pulsar's default).
        small_bytes: 1,000 topics of 34 bytes each.
        large_bytes: 100,000 topics of 34 bytes each.
        large_part: Part of the requests whose reply is large.
        readers: Who the connections are.
        slow_part: Part of the requests, or of the connections, that read slowly.
        slow_seconds: How long a slow reader holds any reply, always the same.
        fast_mean_seconds: How long a fast one does: exponential with this mean.
        offered_load: Mean of the bytes that would be held if nobody ever waited, over the limit.
        connections: Unless each request has its own: all of them ask equally often.
        namespaces: Connection n lists namespace n modulo this.
        tenants: Namespace n belongs to tenant n modulo this.
        requests: How many are measured.
        warm_up_seconds: Requests that arrive before this come in addition and are not measured.
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
        """Mean size of a reply."""
        return self.large_part * self.large_bytes + (1 - self.large_part) * self.small_bytes

    @property
    def mean_hold_seconds(self) -> float:
        """Mean time a reply is held."""
        return self.slow_part * self.slow_seconds + (1 - self.slow_part) * self.fast_mean_seconds

    @property
    def requests_per_second(self) -> float:
        """The rate of arrivals: load = rate * E[size * hold] / limit, size and hold independent."""
        return self.offered_load * self.limit_bytes / (self.mean_bytes * self.mean_hold_seconds)

    def namespace_of(self, connection: int) -> str:
        """Return the ``tenant/namespace`` that a connection lists."""
        namespace = connection % self.namespaces
        return f"tenant-{namespace % self.tenants}/namespace-{namespace}"


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one seed, in the order of their arrival.

    Attributes:
        arrivals: Seconds since the start (open loop: nobody waits for an answer before asking).
        connections: Who asks.
        large: Whether the reply is large.
        slow: Whether its reader is slow.
        holds: How many seconds the reply is held once it is admitted.
        measured: Whether the request arrives after the warm-up.
    """

    arrivals: npt.NDArray[np.float64]
    connections: npt.NDArray[np.int64]
    large: npt.NDArray[np.bool_]
    slow: npt.NDArray[np.bool_]
    holds: npt.NDArray[np.float64]
    measured: npt.NDArray[np.bool_]


def requests_of_seed(workload: Workload, seed: int) -> Requests:
    """Draw the requests of one seed: Poisson arrivals at the rate that the load asks for."""
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
        # Neighbours list different namespaces: the slow ones are spread over all tenants.
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
    """One seed under one policy.

    Attributes:
        groups: Waits of all requests, and of those with small and large replies, with fast and
            slow readers, of idle and busy connections (see ``Run.busy``).
        high_water_part: The most that was held at once, over the limit.
        mean_used_part: Mean of what was held while requests were measured, over the limit.
    """

    seed: int
    policy: AdmissionPolicy
    groups: dict[str, WaitFigures]
    high_water_part: float
    mean_used_part: float


@dataclass(frozen=True, slots=True)
class Run:
    """The results of a simulation: how long each request waited, and how it ended.

    Attributes:
        waits: Seconds until each was granted or refused; ``endings``, which of them.
        busy: Whether its connection held, or waited for, another reply when it arrived.
        high_water_permits: The most that was held at once.
    """

    waits: npt.NDArray[np.float64]
    endings: npt.NDArray[np.int64]
    busy: npt.NDArray[np.bool_]
    high_water_permits: int


def simulate(workload: Workload, requests: Requests, policy: AdmissionPolicy) -> Run:
    """Run the requests through the real limiter.

    Raises:
        LimiterFaultError: The limiter lost something, or granted more than it may.
    """
    simulation = _Simulation(workload, requests, policy)
    simulation.start()
    simulation.clock.run()
    require_sound(simulation.semaphore, simulation.rules)
    return simulation.result()


class _Simulation:
    """Requests that arrive, wait for their bytes, hold them, and give them back."""

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
        # Lists: reading one number of an array costs ten times as much.
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
        """Arm the first arrival; each one arms the next."""
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
        """Return what happened to each request."""
        return Run(
            waits=np.array(self._waits),
            endings=np.array(self._endings, dtype=np.int64),
            busy=np.array(self._busy),
            high_water_permits=self.semaphore.statistics().high_water_permits,
        )


def figures_of(
    workload: Workload, requests: Requests, run: Run, *, seed: int, policy: AdmissionPolicy
) -> RunFigures:
    """Summarize one run by groups of requests."""
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
    """Mean bytes held from the first measured arrival to the last arrival."""
    first = float(requests.arrivals[requests.measured][0])
    last = float(requests.arrivals[-1])
    if last <= first:
        return 0.0
    sizes = np.where(requests.large, workload.large_bytes, workload.small_bytes)
    begin = requests.arrivals + run.waits
    end = np.where(run.endings == Ending.COMPLETED, begin + requests.holds, begin)
    inside = np.clip(end, first, last) - np.clip(begin, first, last)
    return float(np.dot(sizes, inside)) / (last - first)
