"""Requests that a broker refuses by name."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.processes.commands import complete_command, type_name
from tests.unit.broker.commands.test_table import CONNECTED, REFUSED, wire


@pytest.mark.parametrize("kind", sorted(REFUSED), ids=type_name)
async def test_a_request_of_a_later_version_is_refused_by_name(kind: int) -> None:
    # Given
    client = wire(CONNECTED)
    # When
    client.say(complete_command(kind))
    # Then
    (answer,) = client.answers()
    assert answer.error.error == pb.NotAllowedError
    assert answer.error.request_id == 1
    assert answer.error.message.startswith(f"{type_name(kind)} is not served")
