"""Yardstick of listings: a uvloop server that only writes a prebuilt answer.

``python -m benchmarks.listings.bare_server ANSWER_FILE [CERTIFICATE_FILE]`` prints ``READY bare
HOST PORT`` and serves until terminated. The transport has its default limits, the socket the
kernel's buffers. Each chunk counts as a request, unparsed, so any real server does more work. With
a certificate it serves uvloop's TLS.
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
    """Answers the first chunk with CONNECTED and every later chunk with the answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._next = GREETING
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport unchanged."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Write once."""
        if self._transport is not None:
            self._transport.write(self._next)
        self._next = self._answer


def server_context(certificate: str) -> ssl.SSLContext:
    """Return a server's TLS context; the file holds the certificate and its key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


async def serve(
    name: str, connection: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None
) -> None:
    """Serve on a free loopback port until the process ends; print the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"READY {name} {host} {port}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    answer = Path(sys.argv[1]).read_bytes()
    run(serve("bare", lambda: BareServer(answer), *map(server_context, sys.argv[2:])))
