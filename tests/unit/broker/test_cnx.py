"""A client's connection to the broker, from its beginning to its end."""

from __future__ import annotations

from tests.support.peers.raw_peer import connect_command, ping
from tests.unit.broker.commands.test_table import FAILED, START, wire


async def test_a_connection_is_counted_from_its_beginning_to_its_end() -> None:
    # Given
    client = wire(START)
    counters = client.cnx.parts.counters
    assert (counters.active, counters.create_success) == (1, 0)
    client.say(connect_command())
    client.say(ping())
    assert counters.create_success == 1
    # When
    client.transport.breaks()
    # Then
    assert client.cnx.state is FAILED
    assert client.cnx not in client.cnx.parts.connections
    assert (counters.active, counters.created_total, counters.closed_total) == (0, 1, 1)
