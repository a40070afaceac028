"""The subscriptions of one topic: how clients come to them, and how they end."""

from __future__ import annotations

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.stores.memory import MemoryMessageStore
from broker.policies.effective import DEFAULTS, Rate
from broker.subscriptions.subscribing import options_of
from broker.subscriptions.subscriptions import RETURN_SECONDS
from server.connection.request_errors import RequestError
from tests.support.subscriptions.recording_client import RecordingClient
from tests.support.subscriptions.stored_topic import StoredTopic

Shared, Exclusive = pb.CommandSubscribe.Shared, pb.CommandSubscribe.Exclusive
HOST = "127.0.0.1"


def asking(
    name: str = "s", kind: pb.CommandSubscribe.SubType.ValueType = Shared
) -> pb.CommandSubscribe:
    return pb.CommandSubscribe(
        topic="t", subscription=name, subType=kind, consumer_id=1, request_id=1, consumer_name="c"
    )


async def topic_with(**policies: object) -> StoredTopic:
    topic = await StoredTopic.loaded(MemoryMessageStore())
    topic.policies = replace(DEFAULTS, **policies)
    topic.subscriptions.policies_changed()
    return topic


async def test_a_consumer_that_subscribes_too_often_is_refused_and_makes_no_subscription() -> None:
    # Given
    topic = await topic_with(subscribe_rate=Rate(2, period_seconds=1000))
    for _ in range(2):
        await topic.subscriptions.open(asking(), HOST)
    # When, Then
    with pytest.raises(RequestError) as refused:
        await topic.subscriptions.open(asking("another"), HOST)
    assert refused.value.server_error == pb.NotAllowedError
    assert refused.value.message == "Subscribe limited by subscribe rate limit per consumer."
    assert "another" not in topic.subscriptions
    await topic.subscriptions.open(asking(), "10.0.0.1")


async def test_a_type_that_is_not_allowed_is_not_counted_as_a_subscription() -> None:
    # Given
    topic = await topic_with(
        subscribe_rate=Rate(1, period_seconds=1000), subscription_types=frozenset(("Shared",))
    )
    # When
    with pytest.raises(RequestError, match="doesn't support Exclusive"):
        await topic.subscriptions.open(asking(kind=Exclusive), HOST)
    # Then
    await topic.subscriptions.open(asking(), HOST)


async def test_the_cursor_of_a_reader_is_found_again_after_a_seek() -> None:
    # Given: a reader that has read two messages of three, and goes back to the second.
    topic = await topic_with()
    positions = [topic.publish(payload) for payload in (b"0", b"1", b"2")]
    reading = asking("reader", Exclusive)
    reading.durable = False
    opened = await topic.subscriptions.open(reading, HOST)
    opened.add_consumer(RecordingClient(), options_of(reading))
    opened.seek(positions[1])
    # Then: there is no such subscription any more, until somebody asks for it.
    assert len(topic.subscriptions) == 0
    again = await topic.subscriptions.open(asking("reader"), HOST)
    assert again.cursor.first_left == positions[1]
    assert not again.durable


async def test_the_cursor_of_a_reader_that_does_not_come_again_is_forgotten() -> None:
    # Given
    topic = await topic_with()
    first = topic.publish(b"0")
    reading = asking("reader", Exclusive)
    reading.durable = False
    opened = await topic.subscriptions.open(reading, HOST)
    opened.add_consumer(RecordingClient(), options_of(reading))
    opened.seek(first)
    # When
    topic.clock.advance(RETURN_SECONDS)
    # Then
    again = await topic.subscriptions.open(asking("reader"), HOST)
    assert again.cursor.backlog == 0
    assert again.durable
