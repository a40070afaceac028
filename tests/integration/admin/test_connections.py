"""REST shows connected clients and a connection's details."""

from typing import Any

import aiohttp
import pytest

from tests.support.peers.frames import ping
from tests.support.processes.cluster import cluster

PATH = "/admin/v2/floodgate/connections"


async def asked(method: str, url: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.request(method, url) as answer:
        return answer.status, await answer.json() if answer.status != 204 else None


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_commands_of_a_connection_are_logged_from_put_until_delete(role: str) -> None:
    async with cluster() as parts:
        peer = await parts.peer(role)
        url = f"{parts.part(role).web_service_url}{PATH}"
        _, listed = await asked("GET", url)
        [found] = [one for one in listed["connections"] if one["address"] == peer.address]
        commands = f"{url}/{found['connection']}/commands"
        before = (await asked("GET", commands))[0]
        begun = (await asked("PUT", commands))[0]
        await peer.send(ping())
        await peer.command()
        _, kept = await asked("GET", commands)
        ended = (await asked("DELETE", commands))[0]
        assert (before, begun, ended) == (404, 204, 204)
        said = [(one["direction"], one["command"]) for one in kept["commands"]]
        assert said == [("received", "PING (13 bytes)"), ("sent", "PONG (13 bytes)")]
        assert (await asked("GET", commands))[0] == 404
        assert found["clientVersion"]


async def test_the_command_log_of_an_unknown_connection_is_answered_404() -> None:
    async with cluster() as parts:
        for number in ("0", "x", "9" * 4000, "-1"):
            url = f"{parts.broker.web_service_url}{PATH}/{number}/commands"
            assert (await asked("PUT", url))[0] == 404
