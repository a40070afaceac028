"""CONNECT, as a proxy answers it."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import connect_command
from tests.unit.proxy.commands.test_table import State, wire


@pytest.mark.parametrize(("offered", "spoken"), [(10, 10), (20, 20), (21, 21), (99, 21)])
async def test_connected_on_a_lookup_connection_says_what_the_recording_says(
    offered: int, spoken: int
) -> None:
    # Given
    client = wire(State.INIT)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.protocol_version == spoken
    assert not answer.connected.HasField("max_message_size")
    assert not flags.supports_topic_watchers
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert client.cnx.state is State.PROXY_LOOKUP_REQUESTS


@pytest.mark.parametrize("offered", [0, 9])
async def test_a_protocol_version_below_10_closes(offered: int) -> None:
    # Given
    client = wire(State.INIT)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    assert client.closed
    assert client.answers() == []


async def test_a_pipe_that_fails_by_our_own_fault_is_answered_and_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Given
    client = wire(State.INIT)

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    client.cnx.parts.direct_handler.open = fail
    # When
    client.say(connect_command("127.0.0.1:6650"))
    await settle()
    # Then
    (answer,) = client.answers()
    assert answer.error.error == pb.UnknownError
    assert client.closed
    assert len(caplog.records) == 1
