"""TLS as bytes in, bytes out, and the records it sends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from proto.transport.connection import Connection
from proto.transport.sender import MAX_RECORDS_WAITING
from tests.support.peers.memory_transport import MemoryTransport

if TYPE_CHECKING:
    from proto.transport.tls import TlsLayer

ASKED = b"a record that asks for another of the same size".ljust(1_024)


class Answering:
    """Stands in for TLS whose peer asks for nothing but records of TLS itself."""

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


def peer(*, reads_at_once: bool) -> tuple[Connection, MemoryTransport]:
    connection = Connection(tls=cast("TlsLayer", Answering()))
    return connection, MemoryTransport(connection, reads_at_once=reads_at_once).connect()


@pytest.mark.parametrize("reads", [True, False])
async def test_who_asks_for_records_without_end_and_reads_none_is_closed(reads: bool) -> None:
    # Given
    connection, memory = peer(reads_at_once=reads)
    # When
    for _ in range(MAX_RECORDS_WAITING // len(ASKED)):
        memory.peer_sends(ASKED)
    # Then
    assert not connection.sender.closing
    # When
    memory.peer_sends(ASKED)
    # Then
    assert connection.sender.closing is not reads
