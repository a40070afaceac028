"""Deadlines and naps on a manual clock."""

import asyncio
from contextlib import suppress

import pytest

from limiter.clock import LoopClock, clock_sleep, deadline
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started


async def bounded_wait(clock: ManualClock, seconds: float | None) -> None:
    async with deadline(clock, seconds):
        await asyncio.Event().wait()


async def test_a_block_is_ended_at_its_deadline() -> None:
    clock = ManualClock()
    waiting = await started(bounded_wait(clock, 25.0))
    clock.advance(24.9)
    await settle()
    assert not waiting.done()
    clock.advance(0.1)
    with pytest.raises(TimeoutError):
        await waiting


async def test_a_deadline_applies_to_a_task_with_an_earlier_cancellation() -> None:
    clock = ManualClock()

    async def goes_on() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await bounded_wait(clock, 25.0)

    going_on = await started(goes_on())
    going_on.cancel()
    await settle()
    clock.advance(25.0)
    with pytest.raises(TimeoutError):
        await going_on


async def test_a_block_that_ends_before_its_deadline_is_not_cancelled_later() -> None:
    clock = ManualClock()
    async with deadline(clock, 25.0):
        pass
    clock.advance(100.0)
    await settle()


async def test_without_a_deadline_a_block_waits_indefinitely() -> None:
    clock = ManualClock()
    waiting = await started(bounded_wait(clock, None))
    clock.advance(1e9)
    await settle()
    assert not waiting.done()
    waiting.cancel()


async def test_a_sleep_lasts_for_its_duration() -> None:
    clock = ManualClock()
    sleeping = await started(clock_sleep(clock, 10.0))
    clock.advance(9.9)
    await settle()
    assert not sleeping.done()
    clock.advance(0.1)
    await sleeping


async def test_a_sleep_cancelled_in_the_turn_of_its_end_is_cancelled() -> None:
    clock = ManualClock()
    sleeping = await started(clock_sleep(clock, 10.0))
    sleeping.cancel()
    clock.advance(10.0)
    await settle()
    assert sleeping.cancelled()


async def test_the_loop_clock_runs_and_cancels_timers_on_the_loop() -> None:
    clock, fired = LoopClock(), asyncio.Event()
    clock.call_at(clock.now(), fired.set)
    cancelled = clock.call_at(clock.now(), pytest.fail)
    cancelled.cancel()
    async with deadline(clock, 30.0):
        await fired.wait()
