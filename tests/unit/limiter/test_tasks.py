"""Background tasks: kept until they end, cancelled together, their errors reported."""

import asyncio

from limiter.tasks import BackgroundTasks, ended


async def test_tasks_are_kept_until_they_end() -> None:
    tasks, go_on = BackgroundTasks(), asyncio.Event()
    tasks.start(go_on.wait())
    assert len(tasks) == 1
    go_on.set()
    await tasks.finished()
    assert not tasks


async def test_cancelled_tasks_end_without_a_report() -> None:
    told: list[BaseException] = []
    tasks = BackgroundTasks(told.append)
    tasks.start(asyncio.Event().wait())
    await asyncio.sleep(0)
    tasks.cancel()
    await tasks.finished()
    assert (len(tasks), told) == (0, [])


async def test_the_error_of_a_task_is_reported_and_further_tasks_continue() -> None:
    told: list[BaseException] = []
    tasks, go_on, error = BackgroundTasks(told.append), asyncio.Event(), ValueError("broken")

    async def fail() -> None:
        raise error

    tasks.start(fail())
    tasks.start(go_on.wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (told, len(tasks)) == ([error], 1)
    go_on.set()
    await tasks.finished()


async def test_an_ended_task_is_cancelled_and_awaited() -> None:
    task = asyncio.get_running_loop().create_task(asyncio.Event().wait())
    await ended(task)
    assert task.cancelled()
    await ended(None)
