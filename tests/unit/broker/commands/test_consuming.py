"""SUBSCRIBE, UNSUBSCRIBE and SEEK, as a client sees them when the store of messages fails."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from tests.unit.broker.commands.test_producing import client, producing, topic

Type = pb.BaseCommand
REASON = "the disk is gone"


def subscribe(consumer_id: int = 1) -> pb.BaseCommand:
    asked = pb.CommandSubscribe(
        topic="t", subscription="s", subType=pb.CommandSubscribe.Exclusive, consumer_name="c"
    )
    asked.consumer_id, asked.request_id = consumer_id, 7
    return pb.BaseCommand(type=Type.SUBSCRIBE, subscribe=asked)


UNSUBSCRIBE = pb.BaseCommand(
    type=Type.UNSUBSCRIBE, unsubscribe=pb.CommandUnsubscribe(consumer_id=1, request_id=8)
)
SEEK = pb.BaseCommand(
    type=Type.SEEK,
    seek=pb.CommandSeek(
        consumer_id=1, request_id=8, message_id=pb.MessageIdData(ledgerId=1, entryId=0)
    ),
)


async def test_a_subscription_that_cannot_be_stored_is_refused() -> None:
    # Given
    found = await producing()
    topic(found).ledger.close(REASON)
    # When
    (answer,) = await found.ask(subscribe())
    # Then
    error = answer.error
    assert (error.request_id, error.error, error.message) == (7, pb.PersistenceError, REASON)


@pytest.mark.parametrize("command", [UNSUBSCRIBE, SEEK])
async def test_what_cannot_be_done_to_a_subscription_is_refused(command: pb.BaseCommand) -> None:
    # Given
    found = await client()
    (answer,) = await found.ask(subscribe())
    assert answer.HasField("success")
    topic(found).ledger.close(REASON)
    # When
    *_, answer = await found.ask(command)
    # Then
    error = answer.error
    assert (error.request_id, error.error, error.message) == (8, pb.PersistenceError, REASON)
