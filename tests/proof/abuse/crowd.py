"""Hostile connections: opened at a rate, counted, dropped with a reset."""

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
"""Source addresses of attackers, used in rotation: as many as a small botnet has."""
CONNECT_SECONDS = 3.0
_RESET = struct.pack("ii", 1, 0)
Address = tuple[str, int]


@dataclass(frozen=True)
class Target:
    """A server and its attacker's knowledge of it.

    Attributes:
        role: ``broker`` or ``proxy``.
        binary: Host and port of the binary protocol.
        web: Host and port of HTTP.
        tls: Host and port of the binary protocol with TLS.
        web_tls: Host and port of HTTPS.
        token: Valid: the attacker has an account.
        bad_tokens: Tokens to be refused.
        namespaces: The attacker's, with many topics each.
        tunnel: ``host:port`` of the broker behind a proxy.
        scale: Factor of rates and numbers.
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
        return max(1, round(usual * self.scale))

    @property
    def greeting(self) -> bytes:
        return connect(self.token)

    @property
    def messaging_greeting(self) -> bytes:
        """CONNECT for commands about messages, which need a tunnel behind a proxy."""
        return connect(self.token, self.tunnel)


class HostilePeer(asyncio.Protocol):
    """A hostile connection.

    Args:
        first: Bytes sent immediately.
        counts: Counters: ``opened``, ``closed`` by the server, ``bytes``.
        reads: Whether the peer reads.
        on_data: Called with received bytes.
        on_closed: Called when the server has closed.
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
            # uvloop begins to read after this call, even if reading is paused within it.
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
        """Write unless closed; bytes that the kernel does not take are buffered here."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def unsent_bytes(self) -> int:
        """Bytes not yet taken by the server's kernel."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def vanish(self) -> None:
        """Close with a reset, as a killed process does."""
        if self.left or self._transport is None:
            return
        self.left = True
        with suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RESET
            )
        self._transport.abort()


class Crowd:
    """The hostile connections of an attack; they vanish at the end of a block.

    Args:
        address: Where connections are opened, unless :meth:`peer` names another address.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self.counts: Counter[str] = Counter()
        self._sources = count()
        self.peers: set[HostilePeer] = set()

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for peer in self.peers:
            peer.vanish()
        # An event-loop iteration, so that the transports close.
        await asyncio.sleep(0.05)

    async def peer(
        self,
        first: bytes = b"",
        *,
        reads: bool = True,
        on_data: Callable[[HostilePeer, bytes], None] | None = None,
        on_closed: Callable[[], None] | None = None,
        buffer_bytes: int = 0,
        address: Address | None = None,
    ) -> HostilePeer | None:
        """Open a connection; return None if the server refuses."""
        made = HostilePeer(first, self.counts, reads=reads, on_data=on_data, on_closed=on_closed)
        own = socket.socket()
        try:
            own.setblocking(False)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if buffer_bytes:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            # The kernel chooses the port on connecting, so that each source address has all ports.
            own.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
            own.bind((SOURCES[next(self._sources) % len(SOURCES)], 0))
            loop = asyncio.get_running_loop()
            async with deadline(LoopClock(), CONNECT_SECONDS):
                await loop.sock_connect(own, address or self._address)
            await loop.create_connection(lambda: made, sock=own)
        except (OSError, TimeoutError):
            own.close()
            self.counts["not connected"] += 1
            return None
        self.peers.add(made)
        return made

    async def gather(
        self, number: int, per_second: float, first: bytes = b"", *, reads: bool = True
    ) -> None:
        """Open connections at a rate, strictly in sequence."""
        async for _ in paced(per_second, number):
            await self.peer(first, reads=reads)

    def forget(self, peer: HostilePeer) -> None:
        """Close a connection immediately."""
        peer.vanish()
        self.peers.discard(peer)


_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of linux/in.h, which Python 3.11 does not name."""


async def paced(
    per_second: float, number: int | None = None, seconds: float | None = None
) -> AsyncIterator[int]:
    """Yield on a schedule, so many times or for so long.

    Delays are made up for within a quarter of a second, or dropped.
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
