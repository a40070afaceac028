"""Attacks by peers that get no further than connecting."""

import asyncio
import os
import ssl
import time
from contextlib import suppress

from tests.proof.abuse.crowd import Crowd, HostilePeer, Target, paced
from tests.proof.abuse.words import announced, connect, lookup

HALF_OPEN_A_SECOND = 500
TRICKLING = 500
SILENT, SILENT_A_SECOND = 5_000, 500
HANDSHAKES_A_SECOND = 150
GARBAGE_A_SECOND = 250
HUGE_A_SECOND = 200
TOKENS_A_SECOND = 100
TUNNELS_A_SECOND = 100
_GARBAGE = (
    b"GET /admin/v2/clusters HTTP/1.1\r\nHost: here\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x00\x00\x00\x00" * 100,
    b"\x00\x00\x00\x04\x00\x00\x00\x00",
    b"\xff" * 64,
)


async def half_open(crowd: Crowd, target: Target, seconds: float) -> None:
    """Connect, send nothing, and stay."""
    async for _ in paced(target.number(HALF_OPEN_A_SECOND), seconds=seconds):
        await crowd.peer()


async def trickle(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send one byte a second: half of the peers within CONNECT, half within a listing."""
    words = target.greeting
    asked = lookup("persistent://public/healthy/nothing", 1)
    number = target.number(TRICKLING)
    started = time.monotonic()
    await crowd.gather(number // 2, TRICKLING)
    await crowd.gather(number // 2, TRICKLING, words)
    shown = dict.fromkeys(crowd.peers, 0)
    while (left := seconds - (time.monotonic() - started)) > 0:
        for place, peer in enumerate(list(shown)):
            text = words if place % 2 else asked
            peer.say(text[shown[peer] : shown[peer] + 1])
            shown[peer] += 1
            crowd.counts["bytes said"] += 1
        await asyncio.sleep(min(1.0, left))


async def silent(crowd: Crowd, target: Target, seconds: float) -> None:
    """Complete the handshake, then stay silent."""
    started = time.monotonic()
    await crowd.gather(target.number(SILENT), SILENT_A_SECOND, target.greeting)
    await asyncio.sleep(max(1.0, seconds - (time.monotonic() - started)))
    crowd.counts["open at the end"] = sum(not peer.left for peer in crowd.peers)


async def garbage(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send bytes that are not a frame, to all ports."""
    ports = (target.binary, target.web, target.tls, target.web_tls)
    words = (*_GARBAGE, os.urandom(2_000), target.greeting)
    async for number in paced(target.number(GARBAGE_A_SECOND), seconds=seconds):
        await crowd.peer(words[number % len(words)], address=ports[number % len(ports)])
        await _let_old_ones_go(crowd, 200 * len(ports))


async def huge_frames(crowd: Crowd, target: Target, seconds: float) -> None:
    """Announce 2 GB, or nearly 4, before and after CONNECT; as a frame and as a command."""
    greeting = target.greeting
    words = (
        announced(0x7FFFFFFF, 0x7FFFFFF0),
        announced(0xFFFFFFFF, 64),
        greeting + announced(0x7FFFFFFF, 64),
        greeting + announced(64, 0x7FFFFFFF),
        greeting + announced(0x7FFFFFFF, 0xFFFFFFFF) + bytes(1_000),
    )
    async for number in paced(target.number(HUGE_A_SECOND), seconds=seconds):
        await crowd.peer(words[number % len(words)])
        await _let_old_ones_go(crowd, 500)


async def half_handshakes(crowd: Crowd, target: Target, seconds: float) -> None:
    """Begin TLS and stop: after the first hello, within it, or after the answer."""
    ports = (target.tls, target.web_tls)
    hello = _client_hello()
    words = (hello, hello[: len(hello) // 2], hello[:1], b"", hello + b"\x14\x03\x03\x00\x01\x01")
    async for number in paced(target.number(HANDSHAKES_A_SECOND), seconds=seconds):
        await crowd.peer(words[number % len(words)], address=ports[number % len(ports)])


async def bad_tokens(crowd: Crowd, target: Target, seconds: float) -> None:
    """Present wrong, expired and broken tokens, a connection each."""

    def answered(peer: HostilePeer, data: bytes) -> None:
        crowd.counts["refused" if b"Failed to authenticate" in data else "let in"] += 1
        peer.vanish()

    async for number in paced(target.number(TOKENS_A_SECOND), seconds=seconds):
        token = target.bad_tokens[number % len(target.bad_tokens)]
        await crowd.peer(connect(token), on_data=answered)
        await _let_old_ones_go(crowd, 500)


async def tunnels(crowd: Crowd, target: Target, seconds: float) -> None:
    """Request tunnels from a proxy to addresses that are absent, forbidden or silent."""
    places = (
        "127.0.0.1:1",
        "10.255.255.1:6650",
        "no-such-host.invalid:6650",
        "[::1]:6650",
        "169.254.169.254:80",
        "{}:{}".format(*target.binary),
        "x" * 2_000 + ":6650",
        "127.0.0.1:99999999",
    )
    async for number in paced(target.number(TUNNELS_A_SECOND), seconds=seconds):
        await crowd.peer(connect(target.token, places[number % len(places)]))


async def _let_old_ones_go(crowd: Crowd, most: int) -> None:
    """Drop connections closed by the server, and an arbitrary open connection above the bound."""
    if len(crowd.peers) <= most:
        return
    for peer in [each for each in crowd.peers if each.left]:
        crowd.peers.discard(peer)
    if len(crowd.peers) > most:
        crowd.forget(next(iter(crowd.peers)))


def _client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()
