"""Peers that speak frames by hand: cleanup after a refusal."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from tests.support.messages.wire_peer import WirePeer
from tests.support.peers import message_peer, raw_peer


@pytest.mark.parametrize(
    "connected",
    [
        lambda host, port: raw_peer.RawPeer.shaken_hands(f"pulsar://{host}:{port}"),
        lambda host, port: message_peer.MessagePeer.connect(f"pulsar://{host}:{port}"),
        lambda host, port: WirePeer.connected((host, port)),
    ],
    ids=["raw", "messages", "wire"],
)
async def test_a_handshake_that_fails_leaves_no_socket_open(
    connected: Callable[[str, int], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: int, **more: object) -> None:
            super().__init__(*arguments, **more)
            made.append(self)

    monkeypatch.setattr(socket, "socket", Noted)
    with pytest.raises((EOFError, ConnectionError)):
        await connected(*server.sockets[0].getsockname())
    await asyncio.sleep(0)
    assert made[0].fileno() == -1
    server.close()
