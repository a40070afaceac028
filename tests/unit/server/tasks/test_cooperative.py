"""Long work a few milliseconds at a time."""

import asyncio
import gc
import itertools
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from weakref import ref

import pytest

from server.tasks import cooperative
from server.tasks.cooperative import ShortWork, Steps, in_parts, in_turns
from tests.support.clocks.settle import started


def work(name: str, log: list[str], steps: int = 3) -> Generator[None, None, str]:
    for _ in range(steps):
        log.append(name)
        yield
    return name


async def test_completed_steps_return_the_result_of_the_work() -> None:
    assert await Steps().take(work("a", [])) == "a"
    assert await Steps().take(work("a", [], steps=0)) == "a"


async def test_concurrent_pieces_of_work_take_turns() -> None:
    steps, log = Steps(turn_seconds=0), list[str]()
    await asyncio.gather(steps.take(work("a", log)), steps.take(work("b", log)))
    assert log == ["a", "b", "a", "b", "a", "b"]


async def test_further_tasks_run_between_two_turns_of_any_amount_of_work() -> None:
    steps, log = Steps(turn_seconds=0), list[str]()
    tasks = [asyncio.create_task(steps.take(work("w", log, steps=5))) for _ in range(10)]
    ahead = []
    for _ in range(20):
        before = len(log)
        await asyncio.sleep(0)
        ahead.append(len(log) - before)
    assert max(ahead) == 1
    await asyncio.gather(*tasks)


async def test_further_tasks_run_between_items_of_long_work() -> None:
    log: list[str] = []

    async def go_through(turn_seconds: float) -> None:
        async for item in in_turns("012", turn_seconds):
            log.insert(len(log), item)

    await asyncio.gather(go_through(0), go_through(0))
    assert "".join(log) == "001122"
    log.clear()
    await asyncio.gather(go_through(60), go_through(60))
    assert "".join(log) == "012012"


async def test_short_pieces_of_work_do_not_share_a_turn() -> None:
    steps, log = Steps(turn_seconds=60), list[str]()
    tasks = [asyncio.create_task(steps.take(work("w", log, steps=1))) for _ in range(3)]
    await asyncio.sleep(0)
    assert log == ["w"]
    await asyncio.gather(*tasks)
    assert log == ["w", "w", "w"]


async def test_a_turn_holds_several_steps_while_time_remains() -> None:
    log = list[str]()
    task = asyncio.create_task(Steps(turn_seconds=60).take(work("a", log, steps=1000)))
    await asyncio.sleep(0)
    assert len(log) == 1000
    assert await task == "a"


async def test_failed_or_cancelled_work_does_not_block_further_work() -> None:
    steps, log = Steps(turn_seconds=0), list[str]()

    def fails() -> Generator[None, None, None]:
        yield
        raise ValueError("broken")

    left = await started(steps.take(work("left", log, steps=10_000)))
    left.cancel()
    with pytest.raises(ValueError, match="broken"):
        await steps.take(fails())
    assert await steps.take(work("a", log)) == "a"
    assert left.cancelled()


async def test_short_work_runs_in_order_in_separate_turns_if_long() -> None:
    short, log = ShortWork(turn_seconds=0), list[str]()
    loop = asyncio.get_running_loop()
    await asyncio.gather(
        short.do(lambda: log.append("a")),
        short.do(lambda: (log.append("b"), loop.call_soon(log.append, "other"))),
        short.do(lambda: log.append("c")),
    )
    assert log == ["a", "b", "other", "c"]


async def test_short_work_shares_a_turn_and_returns_its_result_or_error() -> None:
    short = ShortWork(turn_seconds=60)

    def fails() -> None:
        raise ValueError("no")

    found = await asyncio.gather(
        short.do(lambda: 1), short.do(fails), short.do(lambda: 3), return_exceptions=True
    )
    assert found[0] == 1
    assert str(found[1]) == "no"
    assert found[2] == 3


async def test_short_work_without_a_waiting_caller_is_not_run() -> None:
    short, log = ShortWork(), list[str]()
    left = asyncio.ensure_future(short.do(lambda: log.append("left")))
    stays = asyncio.ensure_future(short.do(lambda: log.append("stays")))
    asyncio.get_running_loop().call_soon(left.cancel)
    await asyncio.gather(left, stays, return_exceptions=True)
    assert log == ["stays"]


@pytest.mark.parametrize("seconds_a_look", [0.0, 3_600.0], ids=["stands still", "leaps"])
async def test_a_turn_has_between_1_and_the_maximum_of_steps_under_any_clock(
    monkeypatch: pytest.MonkeyPatch, seconds_a_look: float
) -> None:
    moments = itertools.count()
    monkeypatch.setattr(cooperative, "perf_counter", lambda: next(moments) * seconds_a_look)
    monkeypatch.setattr(cooperative, "MOST_STEPS", 5)
    log = list[str]()

    async def go_through() -> None:
        async for _ in in_turns(range(20)):
            log.append("item")

    short = ShortWork()
    pieces = [lambda: log.append("piece")] * 20
    every = [
        asyncio.create_task(Steps().take(work("step", log, steps=20))),
        asyncio.create_task(go_through()),
        *(asyncio.create_task(short.do(piece)) for piece in pieces),
    ]
    most, seen = 0, Counter[str]()
    while not all(one.done() for one in every):
        await asyncio.sleep(0)
        before, seen = seen, Counter(log)
        most = max(most, *(seen - before).values(), 0)
    assert seen == Counter(step=20, item=20, piece=20)
    assert most == (1 if seconds_a_look else 5)


class Asks:
    def fails(self) -> None:
        raise ValueError("not now")


async def test_the_caller_of_failed_short_work_is_released_from_memory_immediately() -> None:
    asks = Asks()
    kept = ref(asks)
    gc.disable()
    try:
        with suppress(ValueError):
            await ShortWork().do(asks.fails)
        del asks
        await asyncio.sleep(0)
        assert kept() is None
    finally:
        gc.enable()


def test_a_sequence_is_split_into_parts() -> None:
    assert [list(one) for one in in_parts(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert list(in_parts([], 2)) == []
