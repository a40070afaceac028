"""A TLS forwarder to a plain server, like a load balancer."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.certificates import SERVER, PemFiles

CHUNK_BYTES = 65_536


class Certificates(PemFiles):
    """Files of an authority, of a server for 127.0.0.1, and of a client.

    Attributes:
        client: Files of the client's certificate and key.
    """

    def __init__(self, folder: Path, server_name: str = SERVER) -> None:
        super().__init__(folder)
        self.server = self.pair("server", server_name)
        self.client = self.pair("client", "a-client")

    def server_context(self, *, asks_for_certificate: bool) -> ssl.SSLContext:
        """Return the rules of the server's side."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.trust)
        context.load_cert_chain(*self.server)
        if asks_for_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@asynccontextmanager
async def tls_forwarder(
    plain_url: str,
    certificates: Certificates,
    *,
    asks_for_certificate: bool = False,
    port: int = 0,
) -> AsyncIterator[str]:
    """Forward TLS connections to a server for the length of a block; yields the service URL."""
    host, _, plain_port = plain_url.removeprefix("pulsar://").partition(":")
    pipes: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        pipes.add(task)
        far_reader, far_writer = await asyncio.open_connection(host, int(plain_port))
        both = [
            asyncio.ensure_future(_copy(reader, far_writer)),
            asyncio.ensure_future(_copy(far_reader, writer)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass
        finally:
            for one in both:
                one.cancel()
            await asyncio.wait(both)
            for end in (writer, far_writer):
                end.transport.abort()
            pipes.discard(task)

    context = certificates.server_context(asks_for_certificate=asks_for_certificate)
    server = await asyncio.start_server(forward, "127.0.0.1", port, ssl=context)
    try:
        yield f"pulsar+ssl://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for pipe in tuple(pipes):
            pipe.cancel()
        if pipes:
            await asyncio.wait(tuple(pipes))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
