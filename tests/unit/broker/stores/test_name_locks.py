import asyncio
import gc

import pytest

from broker.stores.name_locks import NameLocks, to_its_end
from tests.support.clocks.settle import settle, started
from tests.support.stores.topic_stores import A, B


async def test_each_namespace_has_its_own_lock() -> None:
    turns, done = NameLocks(), []

    async def work(namespace: object, name: str) -> None:
        async with turns.of(namespace):
            await go_on.wait()
            done.append(name)

    go_on = asyncio.Event()
    async with turns.of(B), asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(work(A, name))
        group.create_task(work(B, "never"))
        await settle()
        go_on.set()
        await settle()
        assert done == ["first", "second"]
        for task in group._tasks:
            task.cancel()


async def test_a_lock_exists_only_while_in_use() -> None:
    turns = NameLocks()
    async with turns.of(A):
        assert A in turns
        assert B not in turns
        assert len(turns) == 1
    assert len(turns) == 0


async def test_a_lock_is_released_by_a_failed_or_cancelled_holder() -> None:
    turns = NameLocks()

    async def fails() -> None:
        async with turns.of(A):
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        await fails()
    async with turns.of(A):
        leaving = asyncio.get_running_loop().create_task(fails())
        await settle()
        leaving.cancel()
        await asyncio.wait([leaving])
        assert len(turns) == 1
    assert len(turns) == 0


async def test_work_continues_after_its_caller_is_cancelled() -> None:
    go_on, done = asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        done.append(1)

    leaving = asyncio.get_running_loop().create_task(to_its_end(work()))
    await settle()
    leaving.cancel()
    await asyncio.wait([leaving])
    go_on.set()
    await settle()
    assert done == [1]


async def test_a_failure_without_a_waiter_is_not_logged_as_an_error(caplog) -> None:
    go_on = asyncio.Event()

    async def refuse() -> None:
        await go_on.wait()
        raise ValueError("there is no such topic")

    left = await started(to_its_end(refuse()))
    left.cancel()
    await settle()
    del left
    go_on.set()
    await settle()
    gc.collect()
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []
