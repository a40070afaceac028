"""A client's connection to the proxy, from beginning to end."""

from tests.support.clocks.settle import settle
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import connect_command
from tests.unit.proxy.commands.test_table import State, wire


async def test_a_connection_and_its_commands_are_counted_until_the_connection_closes() -> None:
    client = wire(State.INIT)
    known = client.cnx.parts
    client.say(connect_command())
    client.say(ping())
    counters = known.connection_counters
    before = (counters.active, counters.create_success, known.counters.binary_ops)
    client.transport.breaks()
    await settle()
    assert before == (1, 1, 2)
    assert client.cnx.state is State.CLOSED
    assert (counters.active, counters.closed_total) == (0, 1)
    assert known.connections == set()
