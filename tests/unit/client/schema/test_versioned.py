from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidMessage, NotConnected, TopicNotFound
from client.messages.message import EntryHead, Message
from client.patience import Patience
from client.schema.schema import StringSchema
from client.schema.versioned import (
    MAX_VERSIONS,
    PATIENCE_SECONDS,
    TopicVersions,
    VersionedSchema,
    get_schema,
)
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started

TOPIC = "persistent://public/default/t"
V0, V1 = bytes(8), b"\0\0\0\0\0\0\0\1"


class Tagged(VersionedSchema):
    """A schema reading values by the writer's definition and the reader's."""

    def __init__(self) -> None:
        super().__init__(bytes, None, None, "tagged")

    def decode(self, data: bytes) -> tuple[bytes, bytes]:
        return b"itself", data

    def decoding_of(self, info: pb.Schema) -> Tag:
        if info.schema_data == b"broken":
            raise ValueError("broken")
        return Tag(info.schema_data)


class Tag:
    def __init__(self, tag: bytes) -> None:
        self._tag = tag

    def decode_message(self, message: Message) -> tuple[bytes, bytes]:
        return self._tag, message.data()


class Broker:
    """Answers requests for versions: with the version's number, or an error."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.patience = Patience(self.clock)
        self.asked: list[tuple[str, bytes]] = []
        self.answer = pb.CommandGetSchemaResponse(request_id=0)
        self.error: Exception | None = None

    async def connection_of(self, topic: str) -> Broker:
        if self.error is not None:
            raise self.error
        return self

    async def request(self, build: Callable[[int], pb.BaseCommand]) -> pb.BaseCommand:
        await asyncio.sleep(0)
        question = build(1).getSchema
        self.asked.append((question.topic, question.schema_version))
        answer = pb.CommandGetSchemaResponse()
        answer.CopyFrom(self.answer)
        if not answer.HasField("error_code") and not answer.HasField("schema"):
            answer.schema.schema_data = question.schema_version
        return pb.BaseCommand(getSchemaResponse=answer)


def entry(schema: VersionedSchema, version: bytes) -> EntryHead:
    """Return the head of an entry written by a version."""
    metadata = pb.MessageMetadata(schema_version=version) if version else pb.MessageMetadata()
    return EntryHead(metadata, pb.CommandMessage(), TOPIC, schema)


def value(head: EntryHead) -> object:
    """Return the value of an entry with the byte "x"."""
    return Message(head, None, b"x", -1).value()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def schema() -> Tagged:
    return Tagged()


@pytest.fixture
def versions(schema: Tagged, broker: Broker) -> TopicVersions:
    return schema.writer_schemas(broker, TOPIC)  # type: ignore[arg-type]


async def test_a_schema_version_is_requested_once(versions, schema, broker) -> None:
    first, second, other = (entry(schema, one) for one in (V0, V0, V1))
    assert not versions.known(first)
    await versions.learn(first)
    await versions.learn(other)
    assert versions.known(second)
    assert [value(one) for one in (first, second, other)] == [(V0, b"x"), (V0, b"x"), (V1, b"x")]
    assert broker.asked == [(TOPIC, V0), (TOPIC, V1)]


def test_a_message_without_a_version_is_decoded_by_the_schema_itself(
    versions: TopicVersions, schema: Tagged
) -> None:
    head = entry(schema, b"")
    assert versions.known(head)
    assert value(head) == (b"itself", b"x")


@pytest.mark.parametrize("failure", ["refused", "unreadable"])
async def test_an_unavailable_version_raises_an_error_and_is_requested_again_later(
    versions: TopicVersions, schema: Tagged, broker: Broker, failure: str
) -> None:
    head = entry(schema, V0)
    if failure == "refused":
        broker.answer.error_code = pb.TopicNotFound
    else:
        broker.answer.schema.schema_data = b"broken"
    await versions.learn(head)
    with pytest.raises(InvalidMessage, match="version 0000000000000000 of the schema: "):
        value(head)
    broker.answer = pb.CommandGetSchemaResponse(request_id=0)
    soon, later = entry(schema, V0), entry(schema, V0)
    await versions.learn(soon)
    assert len(broker.asked) == 1
    broker.clock.advance(PATIENCE_SECONDS)
    await versions.learn(later)
    assert value(later) == (V0, b"x")


async def test_the_number_of_remembered_unavailable_versions_is_bounded(
    versions, schema, broker
) -> None:
    broker.answer.error_code = pb.TopicNotFound
    for number in range(3 * MAX_VERSIONS):
        await versions.learn(entry(schema, number.to_bytes(8, "big")))
    assert len(versions._unknown) <= MAX_VERSIONS


async def test_a_version_request_is_retried_when_the_broker_is_unreachable(
    versions: TopicVersions, schema: Tagged, broker: Broker
) -> None:
    head = entry(schema, V0)
    broker.error = NotConnected("gone")
    learning = await started(versions.learn(head))
    broker.error = None
    broker.clock.advance(1)
    await learning
    assert value(head) == (V0, b"x")


async def test_the_least_recently_used_version_is_forgotten(versions, schema, broker) -> None:
    numbers = [number.to_bytes(8, "big") for number in range(MAX_VERSIONS + 1)]
    for number in numbers[:-1]:
        await versions.learn(entry(schema, number))
    assert versions.known(entry(schema, numbers[0]))
    await versions.learn(entry(schema, numbers[-1]))
    assert versions.known(entry(schema, numbers[0]))
    assert not versions.known(entry(schema, numbers[1]))
    assert len(broker.asked) == MAX_VERSIONS + 1


async def test_the_newest_version_is_requested_with_an_empty_version(broker: Broker) -> None:
    await get_schema(broker, TOPIC, b"")  # type: ignore[arg-type]
    assert broker.asked == [(TOPIC, b"")]


async def test_a_refused_version_request_raises_the_brokers_error(broker: Broker) -> None:
    broker.answer.error_code = pb.TopicNotFound
    broker.answer.error_message = "no such topic"
    with pytest.raises(TopicNotFound, match="no such topic"):
        await get_schema(broker, TOPIC, V0)  # type: ignore[arg-type]


def test_a_string_schema_needs_no_writer_versions(broker: Broker) -> None:
    assert StringSchema().writer_schemas(broker, TOPIC) is None  # type: ignore[arg-type]
