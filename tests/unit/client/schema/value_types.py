"""Types of values for mypy, which ``make check`` runs on this module: a schema's, bytes without."""

from dataclasses import dataclass
from typing import Any, assert_type

from client import Client, Consumer, Message, MessageId, Producer, Reader, TableView
from client.schema import AutoConsumeSchema, AvroSchema, JsonSchema, Schema, StringSchema


@dataclass
class Order:
    customer: str


class Reversed(Schema[str]):
    def __init__(self) -> None:
        super().__init__(str, None, None, "REVERSED")

    def encode(self, value: str) -> bytes:
        return value[::-1].encode()

    def decode(self, data: bytes) -> str:
        return data.decode()[::-1]


def heard(consumer: Consumer[Order], message: Message[Order]) -> None:
    assert_type(message.value(), Order)


async def types_of_values(client: Client, any_schema: Schema[Any]) -> None:
    plain = await client.subscribe("a", "s")
    assert_type(plain, Consumer[bytes])
    assert_type((await plain.receive()).value(), bytes)
    assert_type([each.value() async for each in plain], list[bytes])
    orders = await client.subscribe("a", "s", schema=JsonSchema(Order), message_listener=heard)
    assert_type([each.value() for each in await orders.batch_receive()], list[Order])
    assert_type(await client.subscribe("a", "s", schema=AutoConsumeSchema()), Consumer[Any])
    assert_type(await client.subscribe("a", "s", schema=any_schema), Consumer[Any])
    producer = await client.create_producer("a", schema=AvroSchema(Order))
    assert_type(producer, Producer[Order])
    await producer.send(Order("anna"))
    await producer.send(None)
    await producer.send("anna")  # type: ignore[arg-type]
    fields = AvroSchema(None, {"type": "record", "name": "Order", "fields": []})
    assert_type(await client.create_producer("a", schema=fields), Producer[dict[str, Any]])
    reader = await client.create_reader("a", MessageId.earliest, schema=StringSchema())
    assert_type(reader, Reader[str])
    assert_type((await reader.read_next()).value(), str)
    view = await client.create_table_view("a", schema=Reversed())
    assert_type(view, TableView[str])
    assert_type(view["key"], str)
