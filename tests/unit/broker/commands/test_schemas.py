"""GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.policies.effective import DEFAULTS
from broker.schemas.schema import version_bytes
from proto.names import TopicName
from tests.support.processes.cluster import until
from tests.support.processes.commands import Wire
from tests.support.schemas import sent
from tests.unit.broker.commands.test_producing import producing
from tests.unit.broker.commands.test_table import CONNECTED, parts, wire

Type = pb.BaseCommand
NAME = "persistent://public/default/t"


async def with_schema(**keys: str) -> Wire:
    """Return a client of a broker whose topic ``t`` has a schema."""
    client = wire(CONNECTED, parts(**keys))
    topic = TopicName.parse(NAME)
    await client.cnx.parts.schemas.for_producer(topic, sent("String", k="v"), DEFAULTS)
    return client


async def answer_to(client: Wire, command: pb.BaseCommand) -> pb.BaseCommand:
    client.say(command)
    found: list[pb.BaseCommand] = []

    def answered() -> bool:
        found.extend(client.answers())
        return bool(found)

    await until(answered)
    return found[0]


async def asked(client: Wire, **fields: object) -> pb.CommandGetSchemaResponse:
    request = pb.CommandGetSchema(**{"request_id": 7, "topic": NAME, **fields})
    answer = await answer_to(client, Type(type=Type.GET_SCHEMA, getSchema=request))
    return answer.getSchemaResponse


async def created(client: Wire, topic: str) -> pb.CommandGetOrCreateSchemaResponse:
    request = pb.CommandGetOrCreateSchema(request_id=8, topic=topic, schema=sent("String", k="v"))
    command = Type(type=Type.GET_OR_CREATE_SCHEMA, getOrCreateSchema=request)
    return (await answer_to(client, command)).getOrCreateSchemaResponse


@pytest.mark.parametrize("topic", [NAME, "t", f"{NAME}-partition-4"])
async def test_get_schema_answers_the_newest_schema_under_the_name_of_its_topic(topic: str) -> None:
    client = await with_schema()
    answer = await asked(client, topic=topic)
    assert answer.request_id == 7
    assert answer.schema_version == version_bytes(0)
    assert answer.schema.name == "public/default/t"
    assert answer.schema.type == pb.Schema.String
    assert [(one.key, one.value) for one in answer.schema.properties] == [("k", "v")]


async def test_get_schema_of_a_missing_version_is_answered_topic_not_found() -> None:
    client = await with_schema()
    answer = await asked(client, topic="t", schema_version=version_bytes(1))
    assert answer.error_code == pb.TopicNotFound
    assert answer.error_message == "Topic not found or no-schema t"


async def test_a_schema_version_beyond_8_bytes_is_cut_and_an_empty_version_refused() -> None:
    client = await with_schema()
    longer = await asked(client, schema_version=version_bytes(0) + b"\xff")
    empty = await asked(client, schema_version=b"")
    assert longer.schema_version == version_bytes(0)
    assert (empty.error_code, empty.error_message) == (
        pb.IncompatibleSchema,
        "Empty schema version",
    )


async def test_a_short_schema_version_is_refused_and_closes_in_profile_pulsar() -> None:
    real, ours = await with_schema(floodgateProfile="pulsar"), await with_schema()
    request = pb.CommandGetSchema(request_id=7, topic=NAME, schema_version=b"\0")
    real.say(Type(type=Type.GET_SCHEMA, getSchema=request))
    answer = await asked(ours, schema_version=b"\0")
    assert real.closed
    assert answer.error_message == "a schema version has 8 bytes"


async def test_an_invalid_topic_name_is_refused() -> None:
    client = await with_schema()
    answer = await asked(client, topic="persistent://x")
    assert answer.error_code == pb.InvalidTopicName


async def test_creating_a_schema_for_a_missing_topic_is_refused() -> None:
    answer = await created(await with_schema(), "t")
    assert (answer.request_id, answer.error_code) == (8, pb.TopicNotFound)
    assert answer.error_message == "Topic not found t"


async def test_creating_a_schema_loads_an_unloaded_topic() -> None:
    client = await producing()
    topics: Any = client.cnx.parts.loaded_topics
    await topics.unload(TopicName.parse(NAME))
    client.answers()
    answer = await created(client, NAME)
    assert (answer.HasField("error_code"), answer.schema_version) == (False, version_bytes(0))
