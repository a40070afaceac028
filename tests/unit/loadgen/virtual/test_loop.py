import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.virtual.loop import CutError, StandstillError, VirtualLoop
from tests.support.discovery.scripted_broker import on_virtual_loop


@given(st.lists(st.integers(0, 10).map(lambda tenths: tenths / 10), min_size=1, max_size=30))
def test_timers_run_in_order_of_time_and_then_of_arming(moments: list[float]) -> None:
    ran: list[tuple[float, int, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        for number, when in enumerate(moments):
            loop.call_at(when, lambda n=number, w=when: ran.append((w, n, loop.time())))
        loop.call_at(max(moments) + 1, done.set_result, None)
        await done

    on_virtual_loop(main)
    assert [(when, number) for when, number, _ in ran] == sorted(
        (when, number) for number, when in enumerate(moments)
    )
    assert all(time >= when for when, _, time in ran)
    assert all(before[2] <= after[2] for before, after in pairwise(ran))


def test_time_jumps_to_the_next_timer_and_no_further() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(86_400)
        day = loop.time()
        await asyncio.sleep(0)
        return day, loop.time()

    day, then = on_virtual_loop(main)
    assert day == then == pytest.approx(86_400)


def test_a_timer_never_fires_early_despite_rounding() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        due, found = 0.1 + 0.2, loop.create_future()
        start = loop.time()
        wait = due - (loop.time() - start)
        loop.call_at(loop.time() + wait, lambda: found.set_result(loop.time() - start - due))
        return await found

    assert on_virtual_loop(main) >= 0


def test_callbacks_made_ready_by_a_timer_run_before_the_next_timer_of_its_time() -> None:
    said: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_at(1, lambda: loop.call_soon(said.append, "made ready"))
        loop.call_at(1, lambda: (said.append("next"), done.set_result(None)))
        await done

    on_virtual_loop(main)
    assert said == ["made ready", "next"]


def test_cancelled_timers_do_not_move_the_time_and_are_forgotten() -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(5_000):
            loop.call_at(1_000, print).cancel()
        await asyncio.sleep(1)
        return loop.time(), len(loop._timers)

    time, kept = on_virtual_loop(main)
    assert time == pytest.approx(1)
    assert kept <= 2_001


def test_a_loop_without_further_events_raises_a_standstill_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StandstillError, match="nothing is left to happen"):
        on_virtual_loop(main)


def test_work_for_a_thread_runs_immediately_and_raises_its_error() -> None:
    async def main() -> int:
        with pytest.raises(ValueError, match="invalid literal"):
            await asyncio.to_thread(int, "one")
        return await asyncio.to_thread(int, "1")

    assert on_virtual_loop(main) == 1


def test_a_simulation_is_cut_by_the_callback_of_its_caller() -> None:
    # Events without end
    asked: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_later(1, again)

        again()
        await loop.create_future()

    def may_go_on() -> bool:
        asked.append(0)
        return len(asked) < 3

    with (
        pytest.raises(CutError),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(may_go_on)) as runner,
    ):
        runner.run(main())
    assert len(asked) == 3
