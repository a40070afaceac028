"""TLS as bytes in, bytes out, with TLS's own records."""

import gc
import ssl
import weakref
from typing import cast

import pytest

from proto.transport.connection import Connection
from proto.transport.sender import MAX_RECORDS_WAITING
from proto.transport.tls import TlsLayer
from tests.support.peers.memory_transport import MemoryTransport

ASKED = b"a record that asks for another of the same size".ljust(1_024)


class Answering:
    """Stand-in for TLS with a peer that requests only records of TLS itself."""

    established, ended = True, False

    def __init__(self) -> None:
        self._outgoing = b""

    def receive(self, ciphertext: bytes) -> bytes:
        self._outgoing += ciphertext
        return b""

    def take_outgoing(self) -> bytes:
        taken, self._outgoing = self._outgoing, b""
        return taken

    def close(self) -> bytes:
        return b""

    def discard(self) -> None:
        self._outgoing = b""


def peer(*, reads_at_once: bool) -> tuple[Connection, MemoryTransport]:
    connection = Connection(tls=cast("TlsLayer", Answering()))
    return connection, MemoryTransport(connection, reads_at_once=reads_at_once).connect()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_peer_requesting_tls_records_endlessly_without_reading_is_closed(
    reads: bool,
) -> None:
    connection, memory = peer(reads_at_once=reads)
    for _ in range(MAX_RECORDS_WAITING // len(ASKED)):
        memory.peer_sends(ASKED)
    assert not connection.sender.closing
    memory.peer_sends(ASKED)
    assert connection.sender.closing is not reads


async def test_the_state_of_openssl_is_freed_with_the_connection() -> None:
    # A client with an unfinished handshake
    made: list[weakref.ref[ssl.SSLObject]] = []

    class Context(ssl.SSLContext):
        def wrap_bio(self, *args: object, **named: object) -> ssl.SSLObject:
            wrapped = super().wrap_bio(*args, **named)  # type: ignore[arg-type]
            made.append(weakref.ref(wrapped))
            return wrapped

    context = Context(ssl.PROTOCOL_TLS_CLIENT)
    layer = TlsLayer(context, server_side=False, server_hostname="x")
    connection = Connection(tls=layer)
    memory = MemoryTransport(connection).connect()
    gc.disable()
    try:
        memory.abort()
        await connection.wait_closed()
        assert made[0]() is None
        assert layer.peer_certificate() is None
    finally:
        gc.enable()
