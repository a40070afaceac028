"""Schemas: text, JSON and Avro records; incompatible schemas are refused."""

from typing import Any

import pytest

from tests.official_api.apis import Place, received, refusal, within

pytestmark = [pytest.mark.official, pytest.mark.processes]


async def test_a_text_value_is_received_unchanged(place: Place, topic: str, client: Any) -> None:
    schema = place.api.schema.StringSchema()
    consumer = await client.subscribe(topic, "s", schema=schema)
    producer = await client.create_producer(topic, schema=schema)
    await within(producer.send("größe"))
    (message,) = await received(consumer, 1)
    assert message.value() == "größe"
    assert message.data() == "größe".encode()
    assert message.schema_version()


@pytest.mark.parametrize("kind", ["JsonSchema", "AvroSchema"])
async def test_json_and_avro_records_are_received_unchanged(place, kind, topic, client) -> None:
    schema = place.api.schema

    class Address(schema.Record):  # type: ignore[misc, name-defined]
        street = schema.String()

    class Person(schema.Record):  # type: ignore[misc, name-defined]
        name = schema.String()
        age = schema.Integer()
        tags = schema.Array(schema.String())
        address = Address()

    made = getattr(schema, kind)(Person)
    consumer = await client.subscribe(topic, "s", schema=made)
    producer = await client.create_producer(topic, schema=made)
    person = Person(name="Ada", age=36, tags=["x", "y"], address=Address(street="High"))
    await within(producer.send(person))
    (message,) = await received(consumer, 1)
    found = message.value()
    assert isinstance(found, Person)
    assert (found.name, found.age, found.tags) == ("Ada", 36, ["x", "y"])
    assert found.address.street == "High"


async def test_an_incompatible_schema_is_refused(place: Place, topic: str, client: Any) -> None:
    schema = place.api.schema

    class First(schema.Record):  # type: ignore[misc, name-defined]
        a = schema.String()

    class Second(schema.Record):  # type: ignore[misc, name-defined]
        a = schema.Integer(required=True)

    first = await client.create_producer(topic, schema=schema.JsonSchema(First))
    refused = await refusal(client.create_producer(topic, schema=schema.JsonSchema(Second)))
    assert refused == "IncompatibleSchema"
    assert first.is_connected()
