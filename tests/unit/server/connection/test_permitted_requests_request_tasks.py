"""The tasks of a connection: a common exception boundary, and a common end."""

import asyncio
import logging

from server.connection.permitted_requests import RequestTasks
from tests.support.clocks.settle import settle


async def test_an_error_of_a_request_is_answered_and_further_requests_continue(caplog) -> None:
    answered, done, go_on = [], [], asyncio.Event()
    tasks = RequestTasks(lambda number, text: answered.append((number, text)))

    async def fail() -> None:
        raise ZeroDivisionError("by zero")

    async def work() -> None:
        await go_on.wait()
        done.append(True)

    tasks.start(1, work)
    tasks.start(2, fail)
    await settle()
    go_on.set()
    await tasks.finished()
    assert answered == [(2, "ZeroDivisionError: by zero")]
    assert done == [True]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert len(tasks) == 0


async def test_cancelling_ends_all_requests_without_answers() -> None:
    answered, ended = [], []
    tasks = RequestTasks(lambda number, text: answered.append((number, text)))

    async def wait(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(number)

    for number in range(3):
        tasks.start(number, lambda number=number: wait(number))
    await settle()
    tasks.cancel_all()
    await tasks.finished()
    assert sorted(ended) == [0, 1, 2]
    assert answered == []


async def test_a_request_cancelled_before_its_start_creates_no_coroutine() -> None:
    made = []
    tasks = RequestTasks(lambda *_: None)
    tasks.start(1, lambda: made.append(True))
    tasks.cancel_all()
    await tasks.finished()
    assert made == []


async def test_finished_returns_immediately_without_running_requests() -> None:
    await RequestTasks(lambda *_: None).finished()
