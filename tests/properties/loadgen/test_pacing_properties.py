"""Rates hold within 1 % over ten seconds, and no ten milliseconds see more than twice the rate."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.clock import Clock, TimerHandle
from loadgen.engine.pacing import ReadBudget
from loadgen.plan.arrivals import Constant, Poisson, Ramp, Step
from tests.support.discovery.load_clients import client_of, running, virtual_clock
from tests.support.discovery.scripted_broker import ScriptedBroker, on_virtual_loop

SPAN_SECONDS, BURST_SECONDS = 10.0, 0.010
RATES = st.floats(100.0, 3_000.0)
# Sums of many floats: a moment on a window's border may be on either side.
BORDER = 1e-9


def within(moments: list[float], begin: float, seconds: float) -> int:
    """Return the number of moments in a window, including its begin, excluding its end."""
    return bisect_left(moments, begin + seconds - BORDER) - bisect_left(moments, begin - BORDER)


def require_pace(moments: list[float], rate: float, jitter_seconds: float = 0.0) -> None:
    """Check that every whole span has its share, and bursts stay below twice the rate or one."""
    last = moments[-1]
    for begin in moments[:: max(1, len(moments) // 50)]:
        if begin + SPAN_SECONDS <= last:
            assert within(moments, begin, SPAN_SECONDS) == pytest.approx(
                rate * SPAN_SECONDS, rel=0.01, abs=1
            )
    allowed = max(1.0, 2 * rate * (BURST_SECONDS + jitter_seconds))
    most = max(within(moments, begin, BURST_SECONDS) for begin in moments)
    assert most <= allowed


@settings(max_examples=15)
@given(RATES)
def test_constant_arrivals_keep_their_rate_without_bursts(rate: float) -> None:
    moments = Constant(kind="constant", rate=rate).moments(int(rate * 11) + 2, seed=1)
    require_pace(moments, rate)


@settings(max_examples=10)
@given(st.lists(RATES, min_size=1, max_size=3))
def test_each_step_of_arrivals_keeps_its_rate_without_bursts(rates: list[float]) -> None:
    arrivals = Step(kind="step", rates=tuple(rates), each=SPAN_SECONDS)
    moments = arrivals.moments(int(sum(rates) * SPAN_SECONDS), seed=1)
    for number, rate in enumerate(rates):
        begin = number * SPAN_SECONDS
        step = [each for each in moments if begin <= each < begin + SPAN_SECONDS - BORDER]
        assert len(step) == pytest.approx(rate * SPAN_SECONDS, rel=0.01, abs=2)
        require_pace(step, rate)


@settings(max_examples=15)
@given(st.floats(0.0, 2000.0), RATES, st.floats(1.0, 10.0))
def test_a_ramp_follows_its_rate_at_every_moment(first, last, seconds) -> None:
    # Given a ramp, and the time behind it in which the last rate stays
    arrivals = Ramp.model_validate({"kind": "ramp", "from": first, "to": last, "over": seconds})
    during = (first + last) / 2 * seconds
    moments = arrivals.moments(int(during + last * 2), seed=1)
    # Then so many have started by each moment as the area below the rate says
    for share in (0.1, 0.25, 0.5, 0.75, 1.0):
        at = seconds * share
        area = first * at + (last - first) / (2 * seconds) * at * at
        assert within(moments, 0.0, at) == pytest.approx(area, rel=0.01, abs=1)
    assert within(moments, seconds, 1.0) == pytest.approx(last, rel=0.01, abs=1)
    most = max(within(moments, begin, BURST_SECONDS) for begin in moments)
    assert most <= max(1.0, 2 * max(first, last) * BURST_SECONDS)


@settings(max_examples=20)
@given(RATES, st.integers(0, 1 << 32))
def test_poisson_arrivals_have_their_rate_on_average(rate: float, seed: int) -> None:
    starts = 20_000
    moments = Poisson(kind="poisson", rate=rate).moments(starts, seed)
    # Six standard deviations of the sum of so many exponential gaps.
    assert moments[-1] == pytest.approx(starts / rate, rel=6 / starts**0.5)
    assert moments == sorted(moments)


class LateClock:
    """A clock whose timers fire late by varying delays."""

    def __init__(self, clock: Clock, lateness: list[float]) -> None:
        self.now, self._clock, self._lateness = clock.now, clock, cycle(lateness)

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        return self._clock.call_at(when + next(self._lateness), callback, *args)


@settings(max_examples=15)
@given(
    clients=st.integers(1, 7),
    rate=st.floats(50.0, 300.0),
    lateness=st.lists(st.floats(0.0, 0.002), min_size=1, max_size=5),
)
def test_late_timers_do_not_change_the_rate_of_requests(clients, rate, lateness) -> None:
    async def sent() -> list[float]:
        # Given clients that start evenly apart within a period
        clock = LateClock(virtual_clock(), lateness)
        broker = ScriptedBroker(clock, delays={"lookup": 0.001})  # type: ignore[arg-type]
        every = clients / rate
        load = [client_of(broker, do="lookup", every=every) for _ in range(clients)]
        async with AsyncExitStack() as stack:
            for number, client in enumerate(load):
                client.started = number / rate
                await client.until(client.started)
                await stack.enter_async_context(running(client))
            await asyncio.sleep(11.0)
        return sorted(row.sent or 0.0 for each in load for row in each.context.rows.requests)

    require_pace(on_virtual_loop(sent), rate, jitter_seconds=0.002)


@settings(max_examples=40)
@given(
    rate=st.floats(2560.0, 50e6),
    lateness=st.lists(st.floats(0.0, 0.002), min_size=1, max_size=5),
)
def test_late_timers_do_not_change_the_rate_of_a_reader(rate, lateness) -> None:
    # Given a server that always has more to read, and a reader whose first burst is over
    budget, now, read = ReadBudget(rate, 0.0), 0.0, []
    step = 0
    while now < SPAN_SECONDS + 1:
        taken = budget.available_bytes(now)
        budget.tokens -= taken
        read.append((now, taken))
        pause = budget.pause_seconds(now)
        now += max(pause + lateness[step % len(lateness)], 1e-4)
        step += 1
    whole = sum(taken for at, taken in read if 0.5 <= at < 0.5 + SPAN_SECONDS)
    assert whole == pytest.approx(rate * SPAN_SECONDS, rel=0.011)
    # Reads come in quanta, so two of them bound a burst, not ten milliseconds.
    quantum = max(256, min(rate * 0.1, 256 * 1024))
    for begin, _ in read[:: max(1, len(read) // 40)]:
        burst = sum(taken for at, taken in read if begin <= at < begin + 1.0)
        assert burst <= rate * 1.0 + 2 * quantum + 1
