"""Attacks on the web port: silent connections, slow and huge requests, and bombs."""

import asyncio
import gzip
import time
import zlib
from functools import cache

from tests.proof.abuse.crowd import Crowd, Target, paced

IDLE, IDLE_A_SECOND = 2_000, 500
SLOW = 300
HUGE_A_SECOND = 50
DEAF, PIPELINED = 50, 50
REQUESTS_A_SECOND = 400
_BOMB_BYTES = 64 * 1024 * 1024


async def idle_http(crowd: Crowd, target: Target, seconds: float) -> None:
    """Open HTTP connections; half send one request and stay, half stay silent."""
    asked = _get(target, "/admin/v2/brokers/ready")
    started = time.monotonic()
    number = target.number(IDLE)
    await crowd.gather(number // 2, IDLE_A_SECOND, asked)
    await crowd.gather(number // 2, IDLE_A_SECOND)
    await asyncio.sleep(seconds - (time.monotonic() - started))
    crowd.counts["open at the end"] = sum(not peer.left for peer in crowd.peers)


async def slow_http(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send heads and bodies one byte a second, and never end."""
    head = (
        f"PUT /admin/v2/persistent/hostile/ns-0/slow HTTP/1.1\r\nHost: localhost\r\n"
        f"{_credentials(target)}Content-Type: application/json\r\n"
    )
    body = (head + "Content-Length: 1000000\r\n\r\n").encode()
    chunked = (head + "Transfer-Encoding: chunked\r\n\r\n").encode()
    for number in range(target.number(SLOW)):
        await crowd.peer((b"GET /", body, chunked)[number % 3])
    peers = list(crowd.peers)
    async for _ in paced(1, seconds=seconds):
        for number, peer in enumerate(peers):
            peer.say((b"x", b"{", b"1\r\n{\r\n")[number % 3])
        crowd.counts["bytes said"] += len(peers)


async def huge_http(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send huge headers and paths, bodies that decompress to 64 MB, deep and wide JSON."""
    words = _huge(target)

    def answered(_: object, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 "):
            crowd.counts[f"HTTP {data[9:12].decode(errors='replace')}"] += 1

    async for number in paced(target.number(HUGE_A_SECOND), seconds=seconds):
        await crowd.peer(words[number % len(words)], on_data=answered)
        if len(crowd.peers) > 50:
            crowd.forget(next(iter(crowd.peers)))


async def deaf_http(crowd: Crowd, target: Target, seconds: float) -> None:
    """Pipeline HTTP requests for listings and metrics, and read nothing."""
    for number in range(target.number(DEAF)):
        namespace = target.namespaces[number % len(target.namespaces)]
        asked = _get(target, f"/admin/v2/persistent/{namespace}") + _get(target, "/metrics/")
        await crowd.peer(asked * PIPELINED, reads=False, buffer_bytes=4_096)
        crowd.counts["requests"] += 2 * PIPELINED
    await asyncio.sleep(seconds)


async def request_flood(crowd: Crowd, target: Target, seconds: float) -> None:
    """Request existing and absent paths without end, each tenth over a new connection."""
    paths = (
        "/admin/v2/clusters",
        "/admin/v2/persistent/hostile/nothing/here/stats",
        "/no/such/path",
        "/admin/v2/brokers/ready",
        "/admin/v2/namespaces/hostile",
    )

    def answered(_: object, data: bytes) -> None:
        for line in data.split(b"HTTP/1.1 ")[1:]:
            crowd.counts[f"HTTP {line[:3].decode(errors='replace')}"] += 1

    async for number in paced(target.number(REQUESTS_A_SECOND), seconds=seconds):
        if number % 10 == 0:
            if len(crowd.peers) > 20:
                crowd.forget(next(iter(crowd.peers)))
            peer = await crowd.peer(on_data=answered)
        if peer is not None:
            peer.say(_get(target, paths[number % len(paths)]))
            crowd.counts["requests"] += 1


def _get(target: Target, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{_credentials(target)}\r\n".encode()


def _credentials(target: Target) -> str:
    return f"Authorization: Bearer {target.token}\r\n"


@cache
def _bombs() -> tuple[bytes, bytes]:
    """Return bodies that decompress to 64 MB each, by gzip and by deflate."""
    packed = gzip.compress(b"[" + b"1," * (_BOMB_BYTES // 2), 6)
    return packed, zlib.compress(b" " * _BOMB_BYTES, 6)


def _huge(target: Target) -> list[bytes]:
    packed, inflated = _bombs()
    deep, wide = b"[" * 100_000, b"{" + b'"k":1,' * 100_000 + b'"z":1}'
    start = "PUT /admin/v2/persistent/hostile/ns-0/huge/properties HTTP/1.1\r\nHost: localhost\r\n"
    start += _credentials(target) + "Content-Type: application/json\r\n"

    def put(body: bytes, more: str = "") -> bytes:
        return f"{start}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body

    return [
        f"GET / HTTP/1.1\r\nHost: localhost\r\nX-Huge: {'x' * 60_000}\r\n\r\n".encode(),
        b"GET / HTTP/1.1\r\n" + b"X-Many: x\r\n" * 5_000 + b"\r\n",
        f"GET /{'a' * 60_000} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        put(packed, "Content-Encoding: gzip\r\n"),
        put(inflated, "Content-Encoding: deflate\r\n"),
        put(deep),
        put(wide),
        f"{start}Content-Length: 2147483647\r\n\r\n".encode() + b"{" * 50_000,
        f"{start}Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n".encode() + b"{" * 50_000,
    ]
