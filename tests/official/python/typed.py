import pulsar
from consuming import EARLIEST
from place import receive, refusal
from pulsar import schema

COUNT = 5


class Person(schema.Record):
    """Record that is sent."""

    name = schema.String(required=True)
    age = schema.Integer(required=True)


class Stranger(schema.Record):
    """Incompatible record of the same name."""

    name = schema.Integer(required=True)
    town = schema.String(required=True)


def _exchange(place, kind, values, registered):
    client = place.client()
    producer = client.create_producer(place.topic(), schema=kind)
    consumer = client.subscribe(place.topic(), "s", initial_position=EARLIEST, schema=kind)
    for value in values:
        producer.send(value)
    got = [message.value() for message in receive(consumer, len(values))]
    status, answer = place.rest("GET", f"schemas/{place.topic().partition('://')[2]}/schema")
    return {
        "same": got == list(values),
        "status": status,
        "registered": answer["type"] == registered,
        "version": answer["version"],
    }


def schema_string(place):
    return _exchange(
        place, schema.StringSchema(), [f"text {number}" for number in range(COUNT)], "STRING"
    )


def _records(place, schema_of, registered):
    people = [Person(name=f"name {number}", age=number) for number in range(COUNT)]
    found = _exchange(place, schema_of(Person), people, registered)
    other = place.client()
    found["refused"] = refusal(other.create_producer, place.topic(), schema=schema_of(Stranger))
    return found


def schema_json(place):
    """JSON records, and an incompatible schema."""
    return _records(place, schema.JsonSchema, "JSON")


def schema_avro(place):
    """Avro records, and an incompatible schema."""
    return _records(place, schema.AvroSchema, "AVRO")


def schema_deleted(place):
    """A deleted schema no longer blocks another schema."""
    client = place.client()
    client.create_producer(place.topic(), schema=schema.JsonSchema(Person)).close()
    path = f"schemas/{place.topic().partition('://')[2]}/schema"
    status, _ = place.rest("DELETE", f"{path}?force=true")
    refused = refusal(client.create_producer, place.topic(), schema=schema.JsonSchema(Stranger))
    return {"status": status, "refused": refused}


def missing_topic(place):
    """A missing namespace is refused with a sentence."""
    client = place.client()
    try:
        client.create_producer("persistent://public/nowhere-at-all/topic")
    except pulsar.PulsarException as error:
        return {"refused": bool(str(error))}
    return {"refused": False}


SCENARIOS = [schema_string, schema_json, schema_avro, schema_deleted, missing_topic]
