"""The namespace of a request: each profile has rules for malformed names."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.discovery import LOOKUP_ERRORS, named_or_closed, named_or_refused
from proto.errors import RemoteProtocolError
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.peers.frames import frame
from tests.support.processes.commands import complete_command
from tests.unit.broker.commands.test_table import CONNECTED, parts, wire


def test_a_valid_namespace_name_is_read_in_each_profile() -> None:
    assert str(named_or_refused("a/b")) == str(named_or_closed("a/b")) == "a/b"


def test_a_malformed_namespace_is_refused_with_the_expected_form() -> None:
    with pytest.raises(RequestError, match="expected tenant/namespace") as caught:
        named_or_refused("x")
    assert caught.value.server_error == pb.InvalidTopicName


def test_profile_pulsar_closes_on_a_malformed_namespace_and_accepts_trailing_slashes() -> None:
    with pytest.raises(RemoteProtocolError):
        named_or_closed("x")
    assert str(named_or_closed("a/b/")) == "a/b/"


Type = pb.BaseCommand


@pytest.mark.parametrize("kind", [Type.LOOKUP, Type.PARTITIONED_METADATA])
async def test_a_malformed_topic_name_is_refused_even_if_no_lookup_permit_is_free(
    kind: int,
) -> None:
    client = wire(CONNECTED, parts(maxConcurrentLookupRequest="1"))
    permit = client.cnx.requests.permit(Request(1, LOOKUP_ERRORS))  # type: ignore[attr-defined]
    assert permit is not None
    command = complete_command(kind)
    body = getattr(command, pb.BaseCommand.DESCRIPTOR.fields_by_number[kind].name)
    body.topic = "persistent://a//b"
    client.say(command)
    (answer,) = client.answers()
    found = (answer.lookupTopicResponse, answer.partitionMetadataResponse)
    assert pb.InvalidTopicName in [one.error for one in found]


async def test_each_watch_command_takes_its_own_turn_of_the_event_loop() -> None:
    client = wire(CONNECTED)
    watch = complete_command(Type.WATCH_TOPIC_LIST)
    watch.watchTopicList.namespace, watch.watchTopicList.topics_pattern = "a/b", "("
    client.transport.peer_sends(frame(watch) * 3)
    assert len(client.answers()) == 1
    await settle()
    assert len(client.answers()) == 2
