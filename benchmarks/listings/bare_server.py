"""Yardstick for listings: a uvloop server that only writes a prepared answer.

``python -m benchmarks.listings.bare_server ANSWER_FILE [CERTIFICATE_FILE]`` prints
``READY bare HOST PORT`` and serves until it is terminated. The transport has its default limits,
the socket the kernel's buffers. Each received chunk counts as a request and is not parsed, so any
real server does more work. With a certificate it serves with uvloop's TLS.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from server.loop import run

if TYPE_CHECKING:
    from collections.abc import Callable

GREETING = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.CONNECTED,
        connected=pb.CommandConnected(server_version="bare", protocol_version=20),
    )
)


class BareServer(asyncio.Protocol):
    """A connection that answers the first chunk with CONNECTED, and later ones with the answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._next = GREETING
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport, without changes of its limits."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Write one answer for each received chunk."""
        if self._transport is not None:
            self._transport.write(self._next)
        self._next = self._answer


def server_context(certificate: str) -> ssl.SSLContext:
    """Return the TLS context of a server, from a file with its certificate and key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def serve(
    name: str, connection: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None
) -> None:
    """Serve clients on a free loopback port until the process ends; print the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"READY {name} {host} {port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    answer = Path(sys.argv[1]).read_bytes()
    run(serve("bare", lambda: BareServer(answer), *map(server_context, sys.argv[2:])))
