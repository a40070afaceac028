"""Schemas for tests, and an in-process registry."""

import json
from collections.abc import Sequence

import proto.PulsarApi_pb2 as pb
from broker.schemas.avro.jobs import Answer, Job
from broker.schemas.avro.judge import judgement
from broker.schemas.avro.judging import judged
from broker.schemas.checks import SchemaChecks
from broker.schemas.registry import SchemaRegistry
from broker.schemas.schema import FLOODGATE_SCHEMAS, Schema, SchemaRules
from broker.stores.memory import MemoryStore
from broker.stores.store import StoredSchema
from proto.names import TopicName

TOPIC = TopicName.parse("persistent://tenant/a/t")


class JudgeHere:
    """Judges in the test's own process. See AvroJudge."""

    async def judge(
        self,
        schema: Schema,
        alike: Sequence[StoredSchema],
        compared: Sequence[StoredSchema],
        strategy: str,
    ) -> int | None:
        """Return the index of an equal schema in ``alike``, or None."""
        job = Job(
            schema.data, [one.data for one in alike], [one.data for one in compared], strategy
        )
        answer = judged(Job.of(job.packed()[4:]))
        return judgement(schema.kind, strategy, Answer.of(answer.packed()))


def checks() -> SchemaChecks:
    """Return the checks of all types."""
    return SchemaChecks(JudgeHere())


def registry(rules: SchemaRules = FLOODGATE_SCHEMAS) -> SchemaRegistry:
    return SchemaRegistry(MemoryStore(), checks(), lambda: 1_700_000_000_000, rules)


def record(*fields: dict[str, object], name: str = "A", **others: object) -> bytes:
    return json.dumps({"type": "record", "name": name, "fields": fields, **others}).encode()


def field(name: str, kind: object = "int", **others: object) -> dict[str, object]:
    return {"name": name, "type": kind, **others}


def optional(name: str) -> dict[str, object]:
    return field(name, ["null", "int"], default=None)


def sent(kind: str, data: bytes = b"", **properties: str) -> pb.Schema:
    """Return a schema in a client's form; ``kind`` is a name of the protocol's enum."""
    found = pb.Schema(name="x", schema_data=data, type=pb.Schema.Type.Value(kind))
    for key, value in properties.items():
        found.properties.add(key=key.replace("__", "."), value=value)
    return found


def stored(version: int, data: bytes, kind: str = "AVRO") -> StoredSchema:
    return StoredSchema(version, kind, data)
