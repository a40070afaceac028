"""Listings answered in the turn of their request, and listings answered later."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from broker.cnx import BrokerParts, ServerCnx, ServerCnxState
from broker.stores.changes import TopicChanges
from proto.frames import encode_command
from proto.names import NamespaceName
from tests.support.clocks.settle import settle
from tests.support.processes.cluster import topic_names
from tests.support.processes.commands import Wire
from tests.unit.broker.commands.test_table import parts

NAMESPACE = NamespaceName.parse("tenant/ns")
NAMES = topic_names("tenant/ns", 10)
Type = pb.BaseCommand


def asking(*request_ids: int) -> bytes:
    """Return the frames of listing requests."""
    requests = [
        pb.CommandGetTopicsOfNamespace(request_id=one, namespace=str(NAMESPACE))
        for one in request_ids
    ]
    return b"".join(
        encode_command(
            pb.BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
        )
        for request in requests
    )


class Client:
    """A connected client of a broker with some topics."""

    def __init__(self, of: BrokerParts) -> None:
        self.parts = of
        self.wire = Wire(ServerCnx(of))
        self.wire.cnx.state = ServerCnxState.CONNECTED

    @staticmethod
    async def of_a_broker_with_topics(**keys: str) -> Client:
        of = parts(**keys)
        await of.topics_handler._lister._store.apply(
            NAMESPACE, TopicChanges([name.encode() for name in NAMES])
        )
        return Client(of)

    def answered(self) -> list[int]:
        """Return the request ids of the answered listings."""
        answers = self.wire.answers()
        assert all(len(one.getTopicsOfNamespaceResponse.topics) == len(NAMES) for one in answers)
        return [one.getTopicsOfNamespaceResponse.request_id for one in answers]


async def test_a_listing_that_needs_no_wait_is_answered_in_the_turn_of_its_request() -> None:
    client = await Client.of_a_broker_with_topics()
    for request_id in (1, 2):
        client.wire.transport.peer_sends(asking(request_id))
        assert client.answered() == [request_id]


async def test_only_the_first_of_simultaneous_listings_is_answered_immediately() -> None:
    client = await Client.of_a_broker_with_topics()
    client.wire.transport.peer_sends(asking(1, 2, 3))
    assert client.answered() == [1]
    await settle()
    assert client.answered() == [2, 3]


async def test_a_listing_does_not_overtake_listings_in_flight_on_its_connection() -> None:
    client = await Client.of_a_broker_with_topics()
    client.wire.transport.peer_sends(asking(1, 2))
    client.wire.transport.peer_sends(asking(3))
    assert client.answered() == [1]
    await settle()
    assert client.answered() == [2, 3]


async def test_the_lookup_limit_refuses_even_a_listing_that_needs_no_wait() -> None:
    client = await Client.of_a_broker_with_topics(maxConcurrentLookupRequest="1")
    place = client.parts.permits.lookups.try_acquire("another")
    assert place is not None
    client.wire.transport.peer_sends(asking(1))
    (refused,) = client.wire.answers()
    assert refused.error.error == pb.TooManyRequests
    place.release()
    client.wire.transport.peer_sends(asking(2))
    assert client.answered() == [2]


async def test_in_profile_pulsar_no_listing_is_answered_in_the_turn_of_its_request() -> None:
    client = await Client.of_a_broker_with_topics(floodgateProfile="pulsar")
    client.wire.transport.peer_sends(asking(1))
    assert client.answered() == []
    await settle()
    assert client.answered() == [1]
