"""200,000 random operations on a semaphore, on a clock that is moved by hand.

Operations come in bursts without a turn of the loop between them, so that grants and departures
meet in one turn. After each burst: what is acquired is the sum of all live permits, never more
than the limit, and the queue holds exactly the requests that wait.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from limiter.errors import PermitAcquireError
from limiter.semaphore import AsyncSemaphore
from server.loop import run
from tests.proof.result import ProofOptions, ProofResult
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from limiter.permit import AcquireOutcome, Permit

OPERATIONS, QUICK_OPERATIONS = 200_000, 20_000
LIMIT = 1_000
MAX_QUEUE = 40
ROUNDING_SECONDS = 1e-6
TIMEOUT_SECONDS = 25.0
OWNERS = 8
BURST = 6
MAX_TASKS = 120
SEED = 442
# A task that was granted needs a turn to run, one that was cancelled a second one.
TURNS_TO_SETTLE = 4


class BrokenError(Exception):
    """Something that must always hold does not; with the operation's number."""


def prove(options: ProofOptions) -> ProofResult:
    """Run the operations, then let everybody leave."""
    count = QUICK_OPERATIONS if options.quick else OPERATIONS
    soak = LimiterSoak(random.Random(SEED), options.note)
    result = ProofResult()
    try:
        run(soak.run(count))
    except BrokenError as error:
        result.check("conservation", False, str(error))
    else:
        sentence = f"after each burst of {count:,} operations the sum of all permits was right"
        result.check("conservation", True, sentence)
        result.check("rest", True, "at the end nothing is acquired and nobody waits")
    result.figures = {
        "operations": dict(soak.operations),
        "outcomes": {outcome.value: number for outcome, number in soak.outcomes.items()},
        "high_water_permits": soak.semaphore.statistics().high_water_permits,
        "longest_queue": soak.longest_queue,
    }
    return result


class LimiterSoak:
    """The semaphore, who uses it, and what must be true of it."""

    def __init__(self, chance: random.Random, note: Callable[[str], None]) -> None:
        self._chance = chance
        self._note = note
        self._clock = ManualClock()
        self.outcomes: Counter[AcquireOutcome] = Counter()
        self.operations: Counter[str] = Counter()
        self.longest_queue = 0
        self.semaphore = AsyncSemaphore(
            LIMIT, MAX_QUEUE, TIMEOUT_SECONDS, self._clock, self._observe
        )
        self._live: dict[Permit, None] = {}
        self._busy: set[Permit] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusing = False
        self._problems: list[str] = []

    def _observe(self, outcome: AcquireOutcome, waited_seconds: float) -> None:
        self.outcomes[outcome] += 1
        # The clock adds up thousands of random steps: a waiting time may be off in its last digits.
        if not 0 <= waited_seconds <= TIMEOUT_SECONDS + ROUNDING_SECONDS:
            self._problems.append(f"a request {outcome.value} after {waited_seconds} s")

    async def run(self, count: int) -> None:
        """Operate ``count`` times, then come to rest.

        Raises:
            BrokenError: An invariant does not hold.
        """
        operations = (
            [self._acquire] * 8
            + [self._release] * 6
            + [self._update] * 4
            + [self._cancel_task] * 2
            + [self._pass_time] * 2
            + [self._cancel_owner]
            + [self._change_mind]
        )
        done = 0
        while done < count:
            for _ in range(self._chance.randint(1, BURST)):
                operation = self._chance.choice(operations)
                operation()
                self.operations[operation.__name__.lstrip("_")] += 1
                done += 1
            await self._settle()
            self._check(done)
            if done % 1_000 < BURST:
                self._note(f"{done:,} operations")
        await self._rest(done)

    # -- operations ---------------------------------------------------------------------------

    def _acquire(self) -> None:
        if len(self._tasks) < MAX_TASKS:
            size = self._chance.choice((0, 1, 10, 100, self._chance.randint(1, LIMIT)))
            owner = self._chance.choice((None, *range(OWNERS)))
            asked = (lambda: self._refusing) if self._chance.random() < 0.2 else None
            self._start(partial(self._acquiring, size, owner, asked))

    async def _acquiring(
        self, size: int, owner: int | None, is_cancelled: Callable[[], bool] | None
    ) -> None:
        permit = await self.semaphore.acquire(size, is_cancelled, owner)
        self._live[permit] = None

    def _update(self) -> None:
        permit = self._idle_permit()
        if permit is not None:
            self._busy.add(permit)
            task = self._start(partial(self._updating, permit, self._chance.randint(0, LIMIT)))
            task.add_done_callback(lambda _: self._busy.discard(permit))

    async def _updating(self, permit: Permit, size: int) -> None:
        exchanged = await self.semaphore.update(permit, size)
        del self._live[permit]
        self._live[exchanged] = None

    def _release(self) -> None:
        permit = self._idle_permit()
        if permit is not None:
            del self._live[permit]
            self.semaphore.release(permit)
            self.semaphore.release(permit)  # once more is harmless

    def _cancel_task(self) -> None:
        if self._tasks:
            self._chance.choice(sorted(self._tasks, key=id)).cancel()

    def _cancel_owner(self) -> None:
        self.semaphore.cancel_owner(self._chance.randrange(OWNERS))

    def _pass_time(self) -> None:
        self._clock.advance(self._chance.choice((0.001, 1.0, 5.0, TIMEOUT_SECONDS)))

    def _change_mind(self) -> None:
        self._refusing = not self._refusing

    # -- bookkeeping --------------------------------------------------------------------------

    def _idle_permit(self) -> Permit | None:
        idle = [permit for permit in self._live if permit not in self._busy]
        return self._chance.choice(idle) if idle else None

    def _start(self, work: Callable[[], Coroutine[object, object, None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._expecting_refusals(work))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _expecting_refusals(
        self, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            await work()
        except PermitAcquireError:
            return

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._problems.append(f"{type(error).__name__}: {error}")

    async def _settle(self) -> None:
        for _ in range(TURNS_TO_SETTLE):
            await asyncio.sleep(0)

    def _check(self, done: int) -> None:
        for permit in [one for one in self._live if not one.size and one not in self._busy]:
            del self._live[permit]  # its owner was cancelled, or it is one of 0
        held = sum(permit.size for permit in self._live)
        acquired, waiting = self.semaphore.acquired_permits, self.semaphore.queue_size
        self.longest_queue = max(self.longest_queue, waiting)
        if acquired != held:
            raise BrokenError(f"operation {done}: {acquired} acquired, but {held} are held")
        if not 0 <= acquired <= LIMIT:
            raise BrokenError(f"operation {done}: {acquired} acquired of {LIMIT}")
        if waiting != len(self._tasks) or waiting > MAX_QUEUE:
            raise BrokenError(f"operation {done}: {waiting} queued, {len(self._tasks)} wait")
        if self._problems:
            raise BrokenError(f"operation {done}: {self._problems[0]}")

    async def _rest(self, done: int) -> None:
        """Let every request be cancelled and every permit be released."""
        for task in list(self._tasks):
            task.cancel()
        await self._settle()
        for permit in list(self._live):
            self.semaphore.release(permit)
        self._live.clear()
        self._check(done)
        if self.semaphore.acquired_permits or self.semaphore.queue_size:
            raise BrokenError(f"after everybody left: {self.semaphore!r}")
