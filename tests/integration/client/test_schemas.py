"""Schemas over a broker: versions, refusals, and the writer's own version."""

from dataclasses import dataclass
from enum import Enum

import pytest
from pydantic import BaseModel

from client import Client, IncompatibleSchema, InitialPosition, MessageId
from client.exceptions import InvalidMessage
from client.schema import (
    Array,
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    CustomEnum,
    JsonSchema,
    Record,
    StringSchema,
)
from client.schema import String as Text


class Size(Enum):
    SMALL = "SMALL"
    LARGE = "LARGE"


class Line(Record):
    item = Text()
    size = CustomEnum(Size)


class Order(Record):
    customer = Text(required=True)
    lines = Array(Line())


@dataclass
class Part:
    item: str
    size: Size = Size.SMALL
    count: int | None = None


class Model(BaseModel):
    parts: list[Part]


ORDER = Order(customer="anna", lines=[Line(item="tea", size=Size.LARGE)])
PART = Part("tea", Size.LARGE, 2)
MODEL = Model(parts=[PART])


def version(name: str, *fields: str) -> AvroSchema:
    """Return a version of a record with optional text fields."""
    described = [{"name": one, "type": "string", "default": "none"} for one in fields]
    return AvroSchema(None, {"type": "record", "name": name, "fields": described})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (BytesSchema(), b"\x00\xff"),
        (StringSchema(), "tea ü"),
        (JsonSchema(Order), ORDER),
        (JsonSchema(Part), PART),
        (JsonSchema(Model), MODEL),
        (AvroSchema(Order), ORDER),
        (AvroSchema(Part), PART),
        (AvroSchema(Model), MODEL),
    ],
    ids=lambda value: f"{value}"[:12],
)
async def test_a_value_of_any_schema_is_received_unchanged(client, topic, schema, value) -> None:
    consumer = await client.subscribe(topic, "s", schema=schema)
    producer = await client.create_producer(topic, schema=schema)
    await producer.send(value)
    await producer.send(None)
    message = await consumer.receive()
    assert message.value() == value
    assert message.int_schema_version() == (-1 if isinstance(schema, BytesSchema) else 0)
    assert (await consumer.receive()).value() is None


async def test_each_message_is_decoded_with_its_producers_schema_version(client, topic) -> None:
    older = version("Row", "gone", "kept")
    newer = version("Row", "kept", "added")
    async with await client.create_producer(topic, schema=older) as producer:
        await producer.send({"gone": "a", "kept": "b"})
        await producer.send({"gone": "c", "kept": "d"})
    async with await client.create_producer(topic, schema=newer) as producer:
        await producer.send({"kept": "e", "added": "f"})
    consumer = await client.subscribe(
        topic, "s", schema=newer, initial_position=InitialPosition.Earliest
    )
    messages = [await consumer.receive() for _ in range(3)]
    assert [(one.int_schema_version(), one.value()) for one in messages] == [
        (0, {"kept": "b", "added": "none"}),
        (0, {"kept": "d", "added": "none"}),
        (1, {"kept": "e", "added": "f"}),
    ]


async def test_auto_consume_decodes_with_each_schema_version(client: Client, topic: str) -> None:
    older = version("Row", "kept")
    newer = version("Row", "kept", "added")
    values = {older: {"kept": "a"}, newer: {"kept": "b", "added": "c"}}
    for schema, value in values.items():
        async with await client.create_producer(topic, schema=schema) as producer:
            await producer.send(value)
    reader = await client.create_reader(topic, MessageId.earliest, schema=AutoConsumeSchema())
    found = [(await reader.read_next()).value() for _ in values]
    assert found == list(values.values())


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        (None, b"tea", b"tea"),
        (StringSchema(), "tea", "tea"),
        (JsonSchema(Part), PART, {"item": "tea", "size": "LARGE", "count": 2}),
    ],
    ids=["bytes", "text", "json"],
)
async def test_auto_consume_decodes_bytes_text_or_json(client, topic, schema, value, found) -> None:
    consumer = await client.subscribe(topic, "s", schema=AutoConsumeSchema())
    producer = await client.create_producer(topic, schema=schema)
    await producer.send(value)
    assert (await consumer.receive()).value() == found


async def test_an_incompatible_schema_is_refused(client: Client, topic: str) -> None:
    await client.create_producer(topic, schema=version("Row", "a"))
    incompatible = AvroSchema(
        None, {"type": "record", "name": "Row", "fields": [{"name": "b", "type": "long"}]}
    )
    for schema in (incompatible, StringSchema(), JsonSchema(Part)):
        with pytest.raises(IncompatibleSchema):
            await client.create_producer(topic, schema=schema)
        with pytest.raises(IncompatibleSchema):
            await client.subscribe(topic, "s", schema=schema)


async def test_a_missing_schema_version_fails_the_value_but_not_the_message(client, topic) -> None:
    # The messages name a schema version unknown to the broker
    schema = version("Row", "a")
    producer = await client.create_producer(topic, schema=schema)
    await producer.send({"a": "1"})
    consumer = await client.subscribe(
        f"{topic}-2", "s", schema=schema, initial_position=InitialPosition.Earliest
    )
    other = await client.create_producer(f"{topic}-2", schema=schema)
    source = consumer._topics.topics[f"{topic}-2"].incoming.arrivals._versions
    assert source is not None
    source._topic = f"{topic}-3"  # type: ignore[attr-defined] - as if it was deleted meanwhile
    await other.send({"a": "2"})
    message = await consumer.receive()
    assert schema.decode(message.data()) == {"a": "2"}
    with pytest.raises(InvalidMessage, match="version 0000000000000000 of the schema"):
        message.value()
