"""The body of a forwarded request: kept parts, and bounds."""

import asyncio
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader

from proxy.forwarding.body import ReplayBudget, RequestBody


def content(data: bytes) -> StreamReader:
    reader = StreamReader(Mock(_reading_paused=False), 2**16, loop=asyncio.get_running_loop())
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def sent(body: RequestBody) -> bytes:
    data = body.data()
    if data is None or isinstance(data, bytes):
        return data or b""
    return b"".join([chunk async for chunk in data])


async def test_a_body_within_the_replay_budget_can_be_sent_again() -> None:
    budget = ReplayBudget(1_000)
    body = RequestBody(content(b"small"), budget)
    await body.read_beginning()
    assert budget.held_bytes == 5
    assert [await sent(body), await sent(body)] == [b"small", b"small"]
    assert body.can_be_sent
    body.release()
    assert budget.held_bytes == 0


@pytest.mark.parametrize("budget", [ReplayBudget(4), ReplayBudget(1_000, max_bytes=4)])
async def test_a_body_above_the_replay_limit_is_sent_once_and_not_kept(
    budget: ReplayBudget,
) -> None:
    body = RequestBody(content(b"x" * 100), budget)
    await body.read_beginning()
    assert body.can_be_sent
    data = await sent(body)
    assert data == b"x" * 100
    assert not body.can_be_sent
    assert budget.held_bytes == 0


async def test_no_body_is_kept_while_the_replay_budget_is_full() -> None:
    budget = ReplayBudget(1_000, max_bytes=500, held_bytes=500)
    body = RequestBody(content(b"small"), budget)
    await body.read_beginning()
    assert budget.held_bytes == 500
    assert await sent(body) == b"small"
    assert not body.can_be_sent


async def test_a_request_without_a_body_can_always_be_sent_again() -> None:
    body = RequestBody(None, ReplayBudget(1))
    await body.read_beginning()
    assert body.data() is None
    assert body.data() is None
    assert body.can_be_sent
