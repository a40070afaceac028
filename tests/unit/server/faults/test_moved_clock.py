"""A moved clock fires what is due in the order of its moments, and waits for periodic work."""

import asyncio
from typing import Any

from limiter.clock import clock_sleep
from server.faults.moved_clock import WORK_SECONDS, MovedClock
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle


async def test_due_timers_run_in_the_order_of_their_times() -> None:
    clock = MovedClock(ManualClock())
    begun, seen = clock.now(), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, clock.now() - begun))
        if name == "first":
            clock.call_at(clock.now() + 5, note, "made by the first")

    for name, after in (("last", 3_600.0), ("later", 3_601.0), ("first", 60.0)):
        clock.call_at(begun + after, note, name)
    await clock.advance(3_600)
    assert seen == [("first", 60), ("made by the first", 65), ("last", 3_600)]
    assert clock.now() - begun == 3_600


async def test_periodic_work_ends_before_time_advances_further() -> None:
    clock = MovedClock(ManualClock())
    begun, ended = clock.now(), list[float]()

    async def every_minute() -> None:
        while True:
            await clock_sleep(clock, 60)
            for _ in range(10):
                await asyncio.sleep(0)
            ended.append(clock.now() - begun)

    task = asyncio.create_task(every_minute())
    await settle()
    await clock.advance(180)
    assert ended == [60, 120, 180]
    task.cancel()


async def test_hanging_work_delays_an_advance_no_longer_than_its_limit() -> None:
    base = ManualClock()
    clock = MovedClock(base)

    async def hang() -> None:
        await clock_sleep(clock, 60)
        await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await settle()
    moved = asyncio.create_task(clock.advance(120))
    await settle()
    assert not moved.done()
    base.advance(WORK_SECONDS)
    await moved
    task.cancel()


async def test_time_passes_by_itself_after_an_advance() -> None:
    base, seen = ManualClock(), list[str]()
    clock = MovedClock(base)
    await clock.advance(3_600)
    clock.call_at(clock.now() + 2, seen.append, "two seconds later")
    clock.call_at(clock.now() + 1, seen.append, "a second later")
    base.advance(1)
    await settle()
    assert seen == ["a second later"]
    base.advance(1)
    await settle()
    assert seen == ["a second later", "two seconds later"]
    assert clock.wall_ms() == base.wall_ms() + 3_600_000


async def test_a_timer_armed_before_an_advance_keeps_its_time() -> None:
    base, seen = ManualClock(), list[str]()
    clock = MovedClock(base)
    clock.call_at(clock.now() + 90, seen.append, "due")
    await clock.advance(60)
    base.advance(29)
    await settle()
    assert not seen
    base.advance(1)
    await settle()
    assert seen == ["due"]


async def test_an_error_of_a_timer_stops_no_further_timer() -> None:
    base, seen = ManualClock(), list[str]()
    clock, errors = MovedClock(base), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(told))
    for after in (1.0, 10.0):
        clock.call_at(clock.now() + after, lambda: 1 / 0)
        clock.call_at(clock.now() + after, seen.append, "after it")
    await clock.advance(5)
    base.advance(5)
    await settle()
    assert seen == ["after it"] * 2
    assert len(errors) == 2


async def test_a_cancelled_advance_stops_no_timer() -> None:
    base, seen = ManualClock(), list[str]()
    clock = MovedClock(base)

    async def hang() -> None:
        await clock_sleep(clock, 60)
        await asyncio.Event().wait()

    hangs = asyncio.create_task(hang())
    await settle()
    clock.call_at(clock.now() + 90, seen.append, "due")
    moved = asyncio.create_task(clock.advance(3_600))
    await settle()
    moved.cancel()
    await asyncio.wait([moved])
    base.advance(30)
    await settle()
    assert seen == ["due"]
    hangs.cancel()


async def test_cancelled_timers_are_removed() -> None:
    clock = MovedClock(ManualClock())
    for _ in range(10_000):
        clock.call_at(clock.now() + 3_600, print).cancel()
    assert len(clock._timers) < 100
