"""Versions of schemas: numbering, and the texts of refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.policies.effective import DEFAULTS
from broker.schemas import registry as module
from broker.schemas.errors import SchemaRefusedError
from broker.schemas.registry import SchemaRegistry, schema_name
from broker.schemas.schema import PULSAR_SCHEMAS, Schema, version_bytes
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.stores.store import StoredSchema
from proto.names import TopicName
from server.connection.request_errors import RequestError, UnansweredRequestError
from tests.support.schemas import (
    TOPIC,
    checks,
    field,
    optional,
    record,
    registry,
    sent,
)

V0, V1 = version_bytes(0), version_bytes(1)
INCOMPATIBLE = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException"
OTHER = "Incompatible schema: exists schema type STRING, new schema type JSON"
SMALL, WIDER = record(optional("a")), record(optional("a"), optional("b"))
ENFORCED = replace(DEFAULTS, schema_validation_enforced=True)
NO_UPDATES = replace(DEFAULTS, allow_auto_update_schema=False)


async def refusal(work: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await work
    return caught.value


@pytest.fixture
async def schemas() -> SchemaRegistry:
    return registry()


# -- producers ------------------------------------------------------------------------------------


async def test_the_first_schema_is_version_0_and_an_equal_schema_keeps_its_version() -> None:
    schemas = registry()
    offers = (SMALL, WIDER, SMALL, SMALL.replace(b" ", b""))
    found = [await schemas.for_producer(TOPIC, sent("Json", one), DEFAULTS) for one in offers]
    assert found == [V0, V1, V0, V0]


async def test_a_partition_shares_the_schema_of_its_topic(schemas: SchemaRegistry) -> None:
    await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    partition = TopicName.parse(f"{TOPIC}-partition-3")
    found = await schemas.for_producer(partition, sent("Json", WIDER), DEFAULTS)
    assert found == V1
    assert [one.version for one in await schemas.in_force(TOPIC)] == [0, 1]
    assert schema_name(partition) == "tenant/a/t"


async def test_a_producer_of_another_schema_type_is_refused_with_the_recorded_text() -> None:
    schemas = registry()
    await schemas.for_producer(TOPIC, sent("String"), DEFAULTS)
    error = await refusal(schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS))
    assert error.server_error == pb.IncompatibleSchema
    assert error.message == f"{INCOMPATIBLE}: {OTHER} caused by {INCOMPATIBLE}: {OTHER}"


async def test_an_incompatible_record_is_refused_with_the_recorded_text_and_not_stored() -> None:
    schemas = registry()
    await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    changed = sent("Json", record(field("c")))
    error = await refusal(schemas.for_producer(TOPIC, changed, DEFAULTS))
    assert error.message.startswith(
        f"{INCOMPATIBLE}: Error during schema compatibility check with strategy FULL: "
        'org.apache.avro.SchemaValidationException: Unable to read schema: \n{\n  "type" : "record"'
    )
    assert [one.version for one in await schemas.in_force(TOPIC)] == [0]


async def test_a_producer_without_a_schema_has_no_version_and_is_refused_if_enforced(
    schemas: SchemaRegistry,
) -> None:
    before = await schemas.for_producer(TOPIC, None, ENFORCED)
    await schemas.for_producer(TOPIC, sent("String"), DEFAULTS)
    after = await schemas.for_producer(TOPIC, None, DEFAULTS)
    error = await refusal(schemas.for_producer(TOPIC, None, ENFORCED))
    assert (before, after) == (b"", b"")
    assert error.message.startswith("Producers cannot connect or send message without a schema")
    assert "a schemawhen SchemaValidationEnforced" in error.message


async def test_a_producer_adds_no_schema_where_auto_update_is_disabled(
    schemas: SchemaRegistry,
) -> None:
    error = await refusal(schemas.for_producer(TOPIC, sent("String"), NO_UPDATES))
    by_rest = await schemas.offer(TOPIC, Schema("STRING", b""), NO_UPDATES, may_add=True)
    again = await schemas.for_producer(TOPIC, sent("String"), NO_UPDATES)
    assert "Schema not found and schema auto updating is disabled." in error.message
    assert (by_rest, again) == (0, V0)


async def test_in_profile_pulsar_a_truncated_key_value_schema_has_the_recorded_outcomes() -> None:
    schemas = registry(PULSAR_SCHEMAS)
    with pytest.raises(UnansweredRequestError):
        await schemas.for_producer(TOPIC, sent("KeyValue"), DEFAULTS)
    consumer = schemas.for_consumer(TOPIC, sent("KeyValue"), DEFAULTS, active=False)
    assert str(await refusal(consumer)) == "UnknownError: "
    request = schemas.for_request(TOPIC, sent("KeyValue"), DEFAULTS)
    assert (await refusal(request)).message == "java.nio.BufferUnderflowException"


async def test_a_truncated_key_value_schema_is_refused_as_incompatible(
    schemas: SchemaRegistry,
) -> None:
    asked = (
        schemas.for_producer(TOPIC, sent("KeyValue"), DEFAULTS),
        schemas.for_consumer(TOPIC, sent("KeyValue"), DEFAULTS, active=False),
        schemas.for_request(TOPIC, sent("KeyValue"), DEFAULTS),
    )
    errors = [await refusal(one) for one in asked]
    assert {error.server_error for error in errors} == {pb.IncompatibleSchema}
    assert all("KEY_VALUE" in error.message for error in errors)


# -- consumers ------------------------------------------------------------------------------------


async def test_the_first_consumer_adds_its_schema_to_the_topic(schemas: SchemaRegistry) -> None:
    await schemas.for_consumer(TOPIC, sent("Json", SMALL), DEFAULTS, active=False)
    found = await schemas.get(TOPIC)
    assert found == StoredSchema(0, "JSON", SMALL, {}, 1_700_000_000_000)


async def test_a_consumer_may_not_add_a_schema_to_an_active_topic_without_a_schema() -> None:
    schemas = registry()
    consumer = schemas.for_consumer(TOPIC, sent("Json", SMALL), DEFAULTS, active=True)
    error = await refusal(consumer)
    assert error.message == (
        "Failed to add schema to an active topic with empty(BYTES) schema: new schema type JSON"
    )


async def test_the_schema_of_a_later_consumer_is_checked_but_not_stored(
    schemas: SchemaRegistry,
) -> None:
    await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    await schemas.for_consumer(TOPIC, sent("Json", WIDER), DEFAULTS, active=True)
    narrow = sent("Json", record(field("c")))
    error = await refusal(schemas.for_consumer(TOPIC, narrow, DEFAULTS, active=True))
    assert error.message.startswith(
        "Error during schema compatibility check with strategy BACKWARD: "
    )
    assert [one.version for one in await schemas.in_force(TOPIC)] == [0]


async def test_a_consumer_without_a_schema_or_with_auto_consume_is_accepted(
    schemas: SchemaRegistry,
) -> None:
    await schemas.for_producer(TOPIC, sent("String"), DEFAULTS)
    for schema in (None, sent("AutoConsume")):
        await schemas.for_consumer(TOPIC, schema, DEFAULTS, active=True)


@pytest.mark.parametrize("rules", [PULSAR_SCHEMAS, None])
async def test_an_unreadable_schema_of_a_first_consumer_is_refused_except_in_profile_pulsar(
    rules: module.SchemaRules | None,
) -> None:
    schemas = registry(rules) if rules else registry()
    consumer = schemas.for_consumer(TOPIC, sent("Avro", b"nonsense"), DEFAULTS, active=False)
    if rules:
        await consumer
    else:
        assert (await refusal(consumer)).message == "Invalid schema definition data for AVRO schema"
    assert await schemas.get(TOPIC) is None


# -- versions -------------------------------------------------------------------------------------


async def test_a_deletion_is_a_version_that_hides_all_versions_before() -> None:
    schemas = registry()
    await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    await schemas.for_producer(TOPIC, sent("Json", WIDER), DEFAULTS)
    deleted = await schemas.remove(TOPIC)
    assert deleted == 2
    assert await schemas.get(TOPIC) is None
    assert await schemas.get(TOPIC, 0) is None
    other = await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    assert other == version_bytes(3)


async def test_forgotten_schemas_restart_at_version_0(schemas: SchemaRegistry) -> None:
    await schemas.for_producer(TOPIC, sent("String"), DEFAULTS)
    await schemas.forget(TopicName.parse(f"{TOPIC}-partition-0"))
    kept = await schemas.get(TOPIC)
    await schemas.forget(TOPIC)
    assert kept is not None
    assert await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS) == V0


async def test_profile_pulsar_answers_a_deleted_schema_as_type_none() -> None:
    real, ours = registry(PULSAR_SCHEMAS), registry()
    for schemas in (real, ours):
        await schemas.for_producer(TOPIC, sent("String"), DEFAULTS)
        await schemas.remove(TOPIC)
    shown = await real.asked_for(TOPIC, None)
    assert shown is not None
    assert (shown.kind, shown.version) == ("NONE", 1)
    assert await ours.asked_for(TOPIC, None) is None


async def test_two_brokers_adding_schemas_simultaneously_get_consecutive_versions() -> None:
    store = MemoryStore()
    first, second = (SchemaRegistry(store, checks(), lambda: 0) for _ in range(2))
    found = await asyncio.gather(
        first.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS),
        second.for_producer(TOPIC, sent("Json", WIDER), DEFAULTS),
    )
    assert sorted(found) == [V0, V1]


async def test_the_size_of_all_schemas_of_a_topic_is_bounded(monkeypatch) -> None:
    most = 2 * module.VERSION_BYTES + len(SMALL) + len(WIDER)
    monkeypatch.setattr(module, "MAX_TOPIC_BYTES", most)
    schemas = registry()
    await schemas.for_producer(TOPIC, sent("Json", SMALL), DEFAULTS)
    await schemas.for_producer(TOPIC, sent("Json", WIDER), DEFAULTS)
    widest = record(*map(optional, "abc"))
    error = await refusal(schemas.for_producer(TOPIC, sent("Json", widest), DEFAULTS))
    assert "the schemas of one topic may take" in error.message
    assert len(await schemas.in_force(TOPIC)) == 2
    with pytest.raises(SchemaRefusedError):
        await schemas.remove(TOPIC)


async def test_a_failing_store_is_a_metadata_error() -> None:
    class Broken(MemoryStore):
        async def schemas_of(self, topic: str) -> list[StoredSchema]:
            raise StoreError("the disk is full")

    schemas = SchemaRegistry(Broken(), checks(), lambda: 0)
    error = await refusal(schemas.for_producer(TOPIC, sent("String"), DEFAULTS))
    assert str(error) == "MetadataError: the disk is full"
