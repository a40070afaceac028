"""A million random operations on a semaphore of each policy, on a manual clock.

Operations run in bursts without a turn of the loop between them, so that grants and departures meet
in one turn. After each burst: the acquired amount is the sum of all live permits, it rises no
further than the limit and an overdraft allow, the queue holds exactly the waiting requests, and
under policy fair the holders never all wait to grow. At the end all permits are released.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.permits.account import SharedHolder
from limiter.permits.permit import AcquireOutcome, Permit
from limiter.semaphore.async_semaphore import AsyncSemaphore
from server.loop import run
from tests.proof.result import ProofOptions, ProofResult
from tests.support.clocks.manual_clock import ManualClock

OPERATIONS, QUICK_OPERATIONS = 1_000_000, 20_000
LIMIT = 1_000
LIMITS = (LIMIT, LIMIT, LIMIT // 2, 2 * LIMIT, 0)
OVERDRAFT_MAX = LIMIT // 10
MAX_QUEUE = 40
QUEUES = (MAX_QUEUE, MAX_QUEUE // 4)
TIMEOUT_SECONDS = 25.0
TIMEOUTS_SECONDS = (TIMEOUT_SECONDS, TIMEOUT_SECONDS / 5)
ROUNDING_SECONDS = 1e-6
OWNERS = 8
PROXY = "proxy"
NAMESPACES = ("t/x", "t/y", "u/x")
BURST = 6
MAX_TASKS = 120
MAX_SHARED = 20
SEED = 442
# A granted task needs a turn to run, a cancelled task two turns.
TURNS_TO_SETTLE = 4


class BrokenError(Exception):
    """A violated invariant; with the operation's number."""


def prove(options: ProofOptions) -> ProofResult:
    """Run the operations under each policy, then release everything."""
    count = QUICK_OPERATIONS if options.quick else OPERATIONS
    result = ProofResult()
    for policy in AdmissionPolicy:
        soak = LimiterSoak(random.Random(SEED), policy, options.note)
        result.figures[policy.value] = _prove_one(result, soak, policy, count)
    return result


def _prove_one(
    result: ProofResult, soak: LimiterSoak, policy: AdmissionPolicy, count: int
) -> dict[str, Any]:
    began = time.perf_counter()
    name = policy.value
    try:
        run(soak.run(count))
    except BrokenError as error:
        result.check(f"conservation_{name}", False, str(error))
    else:
        sentence = f"{name}: after each burst of {count:,} operations the sum of all was right"
        result.check(f"conservation_{name}", True, sentence)
        result.check(f"rest_{name}", True, f"{name}: at the end everything is back")
    statistics = soak.semaphore.statistics()
    return {
        "operations": dict(soak.operations),
        "outcomes": {outcome.value: number for outcome, number in soak.outcomes.items()},
        "high_water_permits": statistics.high_water_permits,
        "overdrafts": statistics.overdrafts_total,
        "longest_queue": soak.longest_queue,
        "seconds": round(time.perf_counter() - began, 1),
    }


@dataclass(eq=False)
class Sharing:
    """A holder, and its references by sharer."""

    holder: SharedHolder
    owners: Counter[int] = field(default_factory=Counter)


class LimiterSoak:
    """The semaphore, its users, and its invariants."""

    def __init__(
        self, chance: random.Random, policy: AdmissionPolicy, note: Callable[[str], None]
    ) -> None:
        self._chance = chance
        self._note = note
        self._policy = policy
        self._clock = ManualClock()
        self.outcomes: Counter[AcquireOutcome] = Counter()
        self.operations: Counter[str] = Counter()
        self.longest_queue = 0
        caps = AdmissionCaps(per_namespace=LIMIT, per_tenant=3 * LIMIT // 2)
        rules = AdmissionRules(policy, OVERDRAFT_MAX, caps)
        self.semaphore = AsyncSemaphore(
            LIMIT, MAX_QUEUE, TIMEOUT_SECONDS, self._clock, self._observe, rules
        )
        self.semaphore.owners.exempt_from_quota(PROXY)
        self._live: dict[Permit, None] = {}
        self._busy: set[Permit] = set()
        self._shared: list[Sharing] = []
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._refusing = False
        self._limits = {LIMIT}
        self._acquired = 0
        self._problems: list[str] = []

    def _observe(self, outcome: AcquireOutcome, waited_seconds: float, count: int) -> None:
        self.outcomes[outcome] += count
        # The clock adds up thousands of random steps: a waiting time may be off in its last digits.
        if not 0 <= waited_seconds <= TIMEOUT_SECONDS + ROUNDING_SECONDS:
            self._problems.append(f"a request {outcome.value} after {waited_seconds} s")

    async def run(self, count: int) -> None:
        """Operate ``count`` times, then come to rest.

        Raises:
            BrokenError: An invariant does not hold.
        """
        operations = self._operations()
        done = 0
        while done < count:
            for _ in range(self._chance.randint(1, BURST)):
                operation = self._chance.choice(operations)
                operation()
                self.operations[operation.__name__.lstrip("_")] += 1
                done += 1
            await self._settle()
            await self._forget_what_holds_nothing()
            self._check(done)
            if done % 1_000 < BURST:
                self._note(f"{self._policy.value}: {done:,} operations")
        await self._rest(done)

    def _operations(self) -> list[Callable[[], None]]:
        return (
            [self._acquire] * 16
            + [self._release] * 12
            + [self._update] * 10
            + [self._share, self._join, self._join, self._leave, self._leave]
            + [self._cancel_task] * 4
            + [self._pass_time] * 4
            + [self._cancel_owner, self._cancel_owner, self._change_mind, self._change_limits]
        )

    # -- operations ---------------------------------------------------------------------------

    def _acquire(self) -> None:
        if len(self._tasks) < MAX_TASKS:
            self._start(
                partial(self._acquiring, self._chance.choice((None, PROXY, *range(OWNERS))))
            )

    async def _acquiring(self, owner: Hashable | None) -> None:
        if _deserted(owner):
            return
        size = self._chance.choice((0, 1, 10, 100, self._chance.randint(1, LIMIT)))
        asked = (lambda: self._refusing) if self._chance.random() < 0.2 else None
        namespace = self._chance.choice(NAMESPACES)
        permit = await self.semaphore.acquire(size, asked, owner, namespace)
        self._live[permit] = None

    def _update(self) -> None:
        permit = self._idle_permit()
        if permit is not None:
            self._busy.add(permit)
            more = self._chance.choice((permit.size + 10, self._chance.randint(0, LIMIT)))
            task = self._start(partial(self._updating, permit, more))
            task.add_done_callback(lambda _: self._busy.discard(permit))

    async def _updating(self, permit: Permit, size: int) -> None:
        if _deserted(permit.holder):
            return
        exchanged = await self.semaphore.update(permit, size)
        self._live.pop(permit, None)
        self._live[exchanged] = None

    def _release(self) -> None:
        permit = self._idle_permit()
        if permit is not None:
            del self._live[permit]
            self.semaphore.release(permit)
            self.semaphore.release(permit)  # a second time is harmless

    def _cancel_task(self) -> None:
        if self._tasks:
            self._chance.choice(list(self._tasks)).cancel()

    def _cancel_owner(self) -> None:
        owner = self._chance.choice((PROXY, *range(OWNERS)))
        for sharing in self._shared:
            sharing.owners.pop(owner, None)
        self._shared = [one for one in self._shared if one.owners]
        self.semaphore.owners.cancel(owner)
        if owner == PROXY:
            self.semaphore.owners.exempt_from_quota(PROXY)

    def _pass_time(self) -> None:
        self._clock.advance(self._chance.choice((0.001, 1.0, 5.0, TIMEOUT_SECONDS)))

    def _change_mind(self) -> None:
        self._refusing = not self._refusing

    def _change_limits(self) -> None:
        limit = self._chance.choice(LIMITS)
        self._limits.add(limit)
        queue, seconds = self._chance.choice(QUEUES), self._chance.choice(TIMEOUTS_SECONDS)
        self.semaphore.change_limits(limit, queue, seconds)

    # -- sharing ------------------------------------------------------------------------------

    def _share(self) -> None:
        if len(self._shared) < MAX_SHARED and len(self._tasks) < MAX_TASKS:
            sharing = Sharing(self.semaphore.shared.new(self._chance.choice(NAMESPACES)))
            self._shared.append(sharing)
            self._join_sharing(sharing)
            self._start(partial(self._acquiring, sharing.holder))

    def _join(self) -> None:
        if self._shared:
            self._join_sharing(self._chance.choice(self._shared))

    def _join_sharing(self, sharing: Sharing) -> None:
        owner = self._chance.randrange(OWNERS)
        sharing.owners[owner] += 1
        self.semaphore.shared.join(sharing.holder, owner)

    def _leave(self) -> None:
        if self._shared:
            self._leave_sharing(self._chance.choice(self._shared))

    def _leave_sharing(self, sharing: Sharing) -> None:
        owner = self._chance.choice(list(sharing.owners))
        sharing.owners[owner] -= 1
        if not sharing.owners[owner]:
            del sharing.owners[owner]
        if not sharing.owners:
            self._shared.remove(sharing)
        self.semaphore.shared.leave(sharing.holder, owner)

    # -- bookkeeping --------------------------------------------------------------------------

    def _idle_permit(self) -> Permit | None:
        """Return a permit with memory, or of 0 since this burst, that is not growing already."""
        idle = [one for one in self._live if one not in self._busy and (one.size or one.holder)]
        return self._chance.choice(idle) if idle else None

    def _start(self, work: Callable[[], Coroutine[object, object, None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._expecting_refusals(work))
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    async def _expecting_refusals(
        self, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            await work()
        except (PermitAcquireError, PermitTooLargeError):
            return

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._problems.append(f"{type(error).__name__}: {error}")

    async def _settle(self) -> None:
        for _ in range(TURNS_TO_SETTLE):
            await asyncio.sleep(0)

    async def _forget_what_holds_nothing(self) -> None:
        """Release idle permits of 0, as left by cancelled owners."""
        empty = [one for one in self._live if not one.size and one not in self._busy]
        for permit in empty:
            del self._live[permit]
            self.semaphore.release(permit)
        if empty:
            await self._settle()

    def _check(self, done: int) -> None:
        held = sum(permit.size for permit in self._live if permit.counted)
        acquired, waiting = self.semaphore.acquired_permits, self.semaphore.queue_size
        self.longest_queue = max(self.longest_queue, waiting)
        if acquired != held:
            raise BrokenError(f"operation {done}: {acquired} acquired, but {held} are held")
        if not 0 <= acquired <= self._at_most():
            raise BrokenError(f"operation {done}: {acquired} acquired of {self._at_most()}")
        if waiting != len(self._tasks) or waiting > MAX_QUEUE:
            raise BrokenError(f"operation {done}: {waiting} queued, {len(self._tasks)} wait")
        if self._policy is AdmissionPolicy.FAIR and self._live and self._stalls():
            raise BrokenError(f"operation {done}: all who hold wait to grow")
        if self._problems:
            raise BrokenError(f"operation {done}: {self._problems[0]}")
        self._acquired, self._limits = acquired, {self.semaphore.max_permits}

    def _at_most(self) -> float:
        """Return the upper bound of acquired bytes by the earlier amount and all limits since."""
        if 0 in self._limits:
            return float("inf")
        overdraft = OVERDRAFT_MAX if self._policy is AdmissionPolicy.FAIR else 0
        return max(self._acquired, max(self._limits) + overdraft)

    def _stalls(self) -> bool:
        return all(permit in self._busy for permit in self._live if permit.size)

    async def _rest(self, done: int) -> None:
        """Cancel every request, remove every sharer and release every permit."""
        for task in list(self._tasks):
            task.cancel()
        await self._settle()
        for permit in list(self._live):
            self.semaphore.release(permit)
        while self._shared:
            self._leave_sharing(self._shared[0])
        self._live.clear()
        self._check(done)
        accounts = list(self.semaphore.accounts())
        if self.semaphore.acquired_permits or self.semaphore.queue_size or accounts:
            raise BrokenError(f"after everybody left: {self.semaphore!r}, {accounts}")


def _deserted(owner: object) -> bool:
    """Return whether all sharers have left in this burst, so that requests are impossible."""
    return isinstance(owner, SharedHolder) and not owner.references
