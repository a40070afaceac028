"""Hostile connections: opened at a rate, told to say anything, counted, dropped with a reset."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import cast

from limiter.clock import LoopClock, deadline
from tests.proof.abuse.words import connect

SOURCES = tuple(f"127.0.1.{number}" for number in range(1, 11))
"""Addresses that attackers come from, in turns: as many as a small botnet would have."""
CONNECT_SECONDS = 3.0
_RESET = struct.pack("ii", 1, 0)
Address = tuple[str, int]


@dataclass(frozen=True)
class Target:
    """One server, and what its attacker knows.

    Attributes:
        role: ``broker`` or ``proxy``.
        binary: Host and port of its binary protocol.
        web: Host and port of HTTP.
        tls: Host and port of the binary protocol with TLS.
        web_tls: Host and port of HTTPS.
        token: Good: the attacker has an account here.
        bad_tokens: Tokens that must not pass.
        namespaces: The attacker's own, with many topics each.
        tunnel: ``host:port`` of the broker behind a proxy, for a tunnel to it.
        scale: Rates and numbers are multiplied by it.
    """

    role: str
    binary: Address
    web: Address
    tls: Address
    web_tls: Address
    token: str
    bad_tokens: tuple[str, ...]
    namespaces: tuple[str, ...]
    tunnel: str | None
    scale: float

    def number(self, usual: int) -> int:
        """Return a number or rate, scaled."""
        return max(1, round(usual * self.scale))

    @property
    def greeting(self) -> bytes:
        """CONNECT, with the attacker's token."""
        return connect(self.token)

    @property
    def messaging_greeting(self) -> bytes:
        """CONNECT for commands about messages: behind a proxy they need a tunnel."""
        return connect(self.token, self.tunnel)


class HostilePeer(asyncio.Protocol):
    """One connection.

    Args:
        first: What it says at once.
        counts: Where it counts what becomes of it: ``opened``, ``closed`` by the server, ``bytes``.
        reads: Whether it takes what it is sent.
        on_data: Told of what came.
        on_closed: Told when the server has closed.
    """

    def __init__(
        self,
        first: bytes,
        counts: Counter[str],
        *,
        reads: bool = True,
        on_data: Callable[[HostilePeer, bytes], None] | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        self._first = first
        self._counts = counts
        self._reads = reads
        self._on_data = on_data
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._counts["opened"] += 1
        if self._first:
            self._transport.write(self._first)
        if not self._reads:
            # uvloop begins to read after this call, whatever is said in it.
            asyncio.get_running_loop().call_soon(self._pause)

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._counts["bytes"] += len(data)
        if self._on_data is not None:
            self._on_data(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.left:
            self.left = True
            self._counts["closed"] += 1
            if self._on_closed is not None:
                self._on_closed()

    def say(self, data: bytes) -> None:
        """Write, unless it is closed; what the kernel does not take waits here."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the server's kernel has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def vanish(self) -> None:
        """Leave with a reset, as a process that is killed does."""
        if self.left or self._transport is None:
            return
        self.left = True
        with suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RESET
            )
        self._transport.abort()


class Crowd:
    """The hostile connections of one attack on one address; they vanish at the end of a block."""

    def __init__(self, address: Address, counts: Counter[str]) -> None:
        self._address = address
        self._counts = counts
        self._sources = count()
        self.peers: set[HostilePeer] = set()

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for peer in self.peers:
            peer.vanish()
        # A turn, so that the transports close.
        await asyncio.sleep(0.05)

    async def peer(
        self,
        first: bytes = b"",
        *,
        reads: bool = True,
        on_data: Callable[[HostilePeer, bytes], None] | None = None,
        on_closed: Callable[[], None] | None = None,
        buffer_bytes: int = 0,
    ) -> HostilePeer | None:
        """Open one connection; None where the server does not take it."""
        made = HostilePeer(first, self._counts, reads=reads, on_data=on_data, on_closed=on_closed)
        own = socket.socket()
        try:
            own.setblocking(False)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if buffer_bytes:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            # The port is chosen when it connects: so all ports can be had for each peer.
            own.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
            own.bind((SOURCES[next(self._sources) % len(SOURCES)], 0))
            loop = asyncio.get_running_loop()
            async with deadline(LoopClock(), CONNECT_SECONDS):
                await loop.sock_connect(own, self._address)
            await loop.create_connection(lambda: made, sock=own)
        except (OSError, TimeoutError):
            own.close()
            self._counts["not connected"] += 1
            return None
        self.peers.add(made)
        return made

    async def gather(
        self, number: int, per_second: float, first: bytes = b"", *, reads: bool = True
    ) -> None:
        """Open so many connections at a rate, each in its turn and none before the one before."""
        async for _ in paced(per_second, number):
            await self.peer(first, reads=reads)

    def forget(self, peer: HostilePeer) -> None:
        """Let one vanish now."""
        peer.vanish()
        self.peers.discard(peer)


_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of linux/in.h, which Python 3.11 does not name."""


async def paced(
    per_second: float, number: int | None = None, seconds: float | None = None
) -> AsyncIterator[int]:
    """Yield on a schedule, so many times or for so long; who is late does not catch up for ever.

    What was missed is made up for within a quarter of a second, or not at all.
    """
    started, done = time.monotonic(), 0
    shift = 0.0
    while number is None or done < number:
        now = time.monotonic()
        if seconds is not None and now - started >= seconds:
            return
        due = started + shift + done / per_second
        if due > now:
            await asyncio.sleep(due - now)
        elif now - due > 0.25:
            shift += now - due
        yield done
        done += 1
