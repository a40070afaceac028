"""Passwords are checked off the event loop, and their clients are served as before."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

import proto.PulsarApi_pb2 as pb
from server.authentication.basic.passwords import apr1, is_password
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import RawPeer, lookup_command
from tests.support.processes.cluster import cluster

SHOWN = f"Basic {b64encode(b'ann:right').decode()}"
TOPIC = "persistent://public/default/t"


def keys(folder: Path) -> Mapping[str, str]:
    (folder / "users").write_text(f"ann:{apr1(b'right', 'salt')}\n")
    provider = "org.apache.pulsar.broker.authentication.AuthenticationProviderBasic"
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": provider,
        "basicAuthConf": f"file://{folder / 'users'}",
    }


def connect(password: str) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    command.connect.client_version, command.connect.protocol_version = "tests", 20
    command.connect.auth_method_name = "basic"
    command.connect.auth_data = f"ann:{password}".encode()
    return command


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_commands_after_connect_wait_for_the_password_check(profile: str, tmp_path) -> None:
    async with cluster({"public/default": [TOPIC]}, profile, keys(tmp_path)) as parts:
        for _ in range(2):  # Cached the second time.
            async with await RawPeer.connect(parts.broker.service_url) as peer:
                await peer.send(connect("right"), ping(), lookup_command(1, TOPIC))
                kinds = [(await peer.command()).type for _ in range(3)]
            assert kinds[0] == pb.BaseCommand.CONNECTED
            assert set(kinds[1:]) == {pb.BaseCommand.PONG, pb.BaseCommand.LOOKUP_RESPONSE}


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_wrong_password_is_refused_and_the_connection_closed(role: str, tmp_path) -> None:
    async with cluster(both=keys(tmp_path)) as parts:
        for password, kind in (("right", pb.BaseCommand.CONNECTED), ("no", pb.BaseCommand.ERROR)):
            async with await RawPeer.connect(parts.part(role).service_url) as peer:
                await peer.send(connect(password), ping())
                assert (await peer.command()).type == kind
                if kind == pb.BaseCommand.ERROR:
                    assert await peer.rest() == b""


async def test_a_request_without_a_password_is_answered_while_a_password_is_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing, go_on, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def held(password: bytes, kept: str) -> bool:
        loop.call_soon_threadsafe(hashing.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return is_password(password, kept)

    monkeypatch.setattr("server.authentication.basic.provider.is_password", held)
    async with (
        cluster(both=keys(tmp_path)) as parts,
        aiohttp.ClientSession(parts.broker.web_service_url) as session,
    ):

        async def status(path: str) -> int:
            async with session.get(path, headers={"Authorization": SHOWN}) as answer:
                return answer.status

        asked = asyncio.create_task(status("/admin/v2/tenants"))
        await hashing.wait()
        assert await status("/") == 200
        go_on.set()
        assert await asked == 200
