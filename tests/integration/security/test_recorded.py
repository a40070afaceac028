"""Each role's answers equal a real broker's: a sample of requests, over sockets.

``make proof`` (``security_replay``) makes all requests.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.security.replay import (
    Replayed,
    make_schemas,
    one_of,
    replay_connects,
    replay_questions,
    replay_rest,
    unlisted,
)
from tests.support.security.servers import Secured, secured


@pytest.fixture
async def servers() -> AsyncIterator[Secured]:
    async with secured("pulsar") as found:
        yield found


async def test_connects_are_answered_as_recorded(servers: Secured) -> None:
    direct = await asyncio.to_thread(replay_connects, servers.address, "connect")
    proxied = await asyncio.to_thread(replay_connects, servers.proxy_address, "proxy-connect")
    assert (direct, proxied) == (Replayed(46, []), Replayed(46, []))


async def test_commands_are_answered_as_recorded(servers: Secured) -> None:
    found = await asyncio.to_thread(replay_questions, servers.address, "questions", one_of(5))
    assert found.asked > 200
    assert not found.differences


async def test_odd_names_are_answered_as_recorded(servers: Secured) -> None:
    found = await asyncio.to_thread(replay_questions, servers.address, "names")
    assert found.asked > 150
    assert not found.differences


async def test_commands_through_a_proxy_are_answered_as_recorded(servers: Secured) -> None:
    await asyncio.to_thread(make_schemas, servers.address)
    found = await asyncio.to_thread(
        replay_questions,
        servers.proxy_address,
        "proxy-questions",
        one_of(4),
        via=servers.address,
    )
    assert found.asked > 140
    assert not found.differences


async def test_rest_is_answered_as_recorded(servers: Secured) -> None:
    found = await asyncio.to_thread(replay_rest, servers.web, one_of(41))
    assert found.asked > 200
    assert not unlisted(found)


async def test_rest_through_a_proxy_is_answered_as_without_the_proxy(servers: Secured) -> None:
    found = await asyncio.to_thread(replay_rest, servers.web, one_of(61), behind=servers.proxy_web)
    assert found.asked > 80
    assert not unlisted(found)
