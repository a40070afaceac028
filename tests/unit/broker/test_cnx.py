"""A client's connection to the broker, from beginning to end."""

from dataclasses import replace
from types import SimpleNamespace

from broker.cnx import LEAVING_A_STEP
from broker.ownership.open_ownership import SoleOwnership
from tests.support.clocks.settle import settle
from tests.support.peers.frames import ping
from tests.support.peers.raw_peer import connect_command
from tests.unit.broker.commands.test_table import CONNECTED, FAILED, START, parts, wire


async def test_connections_are_counted_as_active_created_and_closed() -> None:
    client = wire(START)
    counters = client.cnx.parts.counters
    assert (counters.active, counters.create_success) == (1, 0)
    client.say(connect_command())
    client.say(ping())
    assert counters.create_success == 1
    client.transport.breaks()
    assert client.cnx.state is FAILED
    assert client.cnx not in client.cnx.parts.connections
    assert (counters.active, counters.created_total, counters.closed_total) == (0, 1, 1)


async def test_lost_ownership_is_noticed_before_a_frame_is_handled() -> None:
    class Noticing(SoleOwnership):
        noticed = 0

        def notice(self) -> None:
            self.noticed += 1
            assert client.cnx.parts.counters.create_success == self.noticed - 1

    ownership = Noticing(lambda: ("", ""))
    client = wire(START, replace(parts(), ownership=ownership))
    client.say(connect_command())
    assert ownership.noticed == 1
    assert client.cnx.parts.counters.create_success == 1


class LeavingSubscription:
    """Counts leaving consumers."""

    def __init__(self) -> None:
        self.left = 0

    def remove_consumer(self, _: object) -> None:
        self.left += 1


async def test_many_consumers_of_a_lost_connection_are_removed_in_steps() -> None:
    client, subscription = wire(CONNECTED), LeavingSubscription()
    consumer = SimpleNamespace(subscription=subscription)
    client.cnx.consumers = dict.fromkeys(range(2 * LEAVING_A_STEP), consumer)
    client.transport.breaks()
    assert (subscription.left, client.cnx.consumers) == (LEAVING_A_STEP, {})
    await settle()
    assert subscription.left == 2 * LEAVING_A_STEP
