"""A connection that does not say who it is in time is closed; one that asks too fast is refused."""

from __future__ import annotations

import pytest

from proto.frames import encode_command
from server.limits.clients import REQUESTS, ClientLimits
from server.limits.connections import ConnectionBounds, ConnectionLimits
from server.limits.refusals import Limit
from tests.support.processes.commands import complete_command
from tests.unit.server.connection.test_served_connection import Kind, Served, State


def served(limits: ClientLimits) -> Served:
    return Served(limits=limits, pauses=False)


def asks(found: Served, kind: int) -> None:
    found.peer.peer_sends(encode_command(complete_command(kind)))


async def test_who_sends_no_connect_is_told_so_and_closed() -> None:
    # Given
    limits = ClientLimits(handshake_seconds=10.0)
    found = served(limits)
    found.cnx.state = State.GREETING
    # When
    await found.passes(9.9)
    was_closed = found.cnx.sender.closing
    await found.passes(0.2)
    # Then
    assert not was_closed
    assert found.cnx.sender.closing
    assert b"no CONNECT came within 10 s (floodgateHandshakeTimeoutMs)" in found.takes()
    assert limits.refusals.counts[Limit.HANDSHAKE] == 1


async def test_after_connect_the_handshakes_time_says_nothing() -> None:
    # Given
    limits = ClientLimits(handshake_seconds=10.0)
    found = served(limits)
    # When
    await found.passes(11.0)
    # Then
    assert not found.cnx.sender.closing
    assert limits.refusals.counts[Limit.HANDSHAKE] == 0


async def test_one_connection_too_many_is_told_so_and_closed() -> None:
    # Given
    limits = ClientLimits(ConnectionLimits(ConnectionBounds(most=1)))
    first = served(limits)
    # When
    second = served(limits)
    # Then
    assert not first.cnx.sender.closing
    assert second.cnx.sender.closing
    assert b"Reached the maximum number of connections" in second.takes()


@pytest.mark.parametrize("kind", sorted(REQUESTS), ids=Kind.Type.Name)
async def test_a_request_too_soon_is_refused_with_its_own_answer(kind: int) -> None:
    # Given
    limits = ClientLimits(requests_a_second=1)
    found = served(limits)
    for _ in range(2):
        asks(found, kind)
    found.takes()
    # When
    asks(found, kind)
    # Then
    assert found.cnx.commands == [kind, kind]
    assert limits.refusals.counts[Limit.REQUEST_RATE] == 1
    assert b"requests a second of one connection" in found.takes()
    # When
    await found.passes(1.0)
    asks(found, kind)
    # Then
    assert found.cnx.commands == [kind] * 3


async def test_a_proxy_may_ask_as_often_as_its_clients() -> None:
    # Given
    found = served(ClientLimits(requests_a_second=1))
    found.cnx.stands_for_many()
    # When
    for _ in range(20):
        asks(found, Kind.LOOKUP)
    # Then
    assert len(found.cnx.commands) == 20


async def test_what_gives_something_back_is_never_refused() -> None:
    assert not REQUESTS & {Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER, Kind.WATCH_TOPIC_LIST_CLOSE,
                           Kind.UNSUBSCRIBE, Kind.ACK, Kind.FLOW, Kind.SEND}  # fmt: skip
