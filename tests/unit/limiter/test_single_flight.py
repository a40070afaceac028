"""Concurrent identical requests share one piece of work."""

import asyncio
import gc
from contextlib import suppress
from weakref import ref

import pytest

from limiter.single_flight import SingleFlight
from tests.support.clocks.settle import settle, started


class Work:
    """Counts starts, and ends on command."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.go_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return self.begun


async def test_concurrent_callers_of_a_key_share_the_work() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [await started(flights.join("key", work)) for _ in range(5)]
    work.go_on.set()
    assert await asyncio.gather(*asking) == [1] * 5
    assert (work.begun, len(flights)) == (1, 0)


async def test_a_result_is_not_kept_for_later_callers() -> None:
    flights, work = SingleFlight[int](), Work()
    work.go_on.set()
    first, second = await flights.join("key", work), await flights.join("key", work)
    assert (first, second) == (1, 2)


async def test_a_caller_joining_in_the_turn_of_the_end_starts_new_work() -> None:
    flights, work = SingleFlight[int](), Work()
    first = await started(flights.join("key", work))
    work.go_on.set()
    # This waiter's turn directly follows the last step of the work
    second = asyncio.create_task(flights.join("key", work))
    # A caller finding the result outdated may retry again and again
    assert await asyncio.gather(first, second) == [1, 2]
    assert len(flights) == 0


async def test_different_keys_start_separate_work() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [await started(flights.join(key, work)) for key in ("a", "b")]
    assert (work.begun, len(flights)) == (2, 2)
    work.go_on.set()
    await asyncio.gather(*asking)


async def test_a_cancelled_caller_does_not_cancel_work_shared_with_another_caller() -> None:
    flights, work = SingleFlight[int](), Work()
    first = await started(flights.join("key", work))
    second = await started(flights.join("key", work))
    first.cancel()
    await settle()
    work.go_on.set()
    assert await second == 1
    assert work.cancelled == 0


async def test_work_that_finishes_serves_later_callers_although_all_earlier_left() -> None:
    flights, work = SingleFlight[int](finishes=True), Work()
    first = await started(flights.join("key", work))
    first.cancel()
    await settle()
    second = await started(flights.join("key", work))
    work.go_on.set()
    assert await second == 1
    assert (work.cancelled, len(flights)) == (0, 0)


async def test_cancelling_the_last_caller_cancels_the_work_and_a_later_caller_starts_anew() -> None:
    flights, work = SingleFlight[int](), Work()
    left = [await started(flights.join("key", work)) for _ in range(2)]
    for one in left:
        one.cancel()
    await asyncio.sleep(0)
    later = await started(flights.join("key", work))
    assert (work.begun, work.cancelled) == (2, 1)
    work.go_on.set()
    assert await later == 2


async def test_a_failure_is_raised_to_all_waiting_callers_and_not_kept() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [await started(flights.join("key", work)) for _ in range(3)]
    work.error = ValueError("broken")
    work.go_on.set()
    told = await asyncio.gather(*asking, return_exceptions=True)
    assert [str(error) for error in told] == ["broken"] * 3
    work.error = None
    assert await flights.join("key", work) == 2


async def test_a_failure_without_waiting_callers_is_not_logged(caplog) -> None:
    flights, work = SingleFlight[int](), Work()

    async def fails_when_cancelled() -> int:
        try:
            return await work()
        except asyncio.CancelledError:
            raise ValueError("broken") from None

    left = await started(flights.join("key", fails_when_cancelled))
    left.cancel()
    await settle()
    assert left.cancelled()
    del left
    gc.collect()
    assert caplog.messages == []


class Asks:
    async def fails(self) -> int:
        raise ValueError("not now")


@pytest.mark.parametrize("places", [None, asyncio.Semaphore(1)])
async def test_the_caller_of_failed_work_is_released_from_memory_immediately(places) -> None:
    asks, flights = Asks(), SingleFlight[int](places)
    kept = ref(asks)
    gc.disable()
    try:
        with suppress(ValueError):
            await flights.join("key", asks.fails)
        del asks
        await settle()
        assert kept() is None
    finally:
        gc.enable()


async def test_stopping_cancels_all_running_work() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [await started(flights.join(key, work)) for key in "ab"]
    flights.stop()
    await settle()
    assert (work.cancelled, len(flights)) == (2, 0)
    assert all(each.cancelled() for each in asking)


async def test_a_bounded_number_of_works_runs_at_a_time_and_the_next_waits() -> None:
    flights = SingleFlight[int](asyncio.Semaphore(2))
    works = {key: Work() for key in "abc"}
    asking = [await started(flights.join(key, work)) for key, work in works.items()]
    before = [work.begun for work in works.values()]
    works["a"].go_on.set()
    await settle()
    assert (before, works["c"].begun) == ([1, 1, 0], 1)
    for work in works.values():
        work.go_on.set()
    await asyncio.gather(*asking)
