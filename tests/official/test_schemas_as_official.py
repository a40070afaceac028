"""Records are defined, encoded and decoded as by the official client: each is written once."""

import asyncio
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from types import ModuleType
from typing import Any
from uuid import UUID

import pulsar.schema
import pytest

import client.schema
import proto.PulsarApi_pb2 as pb
from client import Client
from tests.official.test_official_client import with_client
from tests.support.processes.cluster import cluster

pytestmark = pytest.mark.official
PACKAGES = (pulsar.schema, client.schema)


class Colour(Enum):
    RED = 1
    GREEN = 2


class Size(Enum):
    SMALL = "SMALL"
    LARGE = "LARGE"


def flat(s: ModuleType) -> Any:
    class Flat(s.Record):
        nothing = s.Null()
        flag = s.Boolean()
        small = s.Integer()
        big = s.Long()
        low = s.Float()
        high = s.Double()
        raw = s.Bytes()
        text = s.String()

    return Flat


def required(s: ModuleType) -> Any:
    class Required(s.Record):
        flag = s.Boolean(required=True)
        number = s.Integer(required=True)
        text = s.String(required=True)
        names = s.Array(s.String(), required=True)
        figures = s.Map(s.Double(), required=True)
        size = s.CustomEnum(Size, required=True)

    return Required


def defaults(s: ModuleType) -> Any:
    class Defaults(s.Record):
        flag = s.Boolean(default=True, required_default=True)
        unset = s.Boolean(required_default=True)
        number = s.Integer(default=5, required_default=True)
        none = s.Long(required_default=True)
        text = s.String(default="tea", required=True, required_default=True)
        hidden = s.String(default="tea")
        size = s.CustomEnum(Size, default=Size.LARGE, required_default=True)
        names = s.Array(s.String(), default=["a"], required_default=True)
        figures = s.Map(s.Integer(), default={"a": 1}, required_default=True)

    return Defaults


def enums(s: ModuleType) -> Any:
    class Enums(s.Record):
        plain = Size
        again = s.CustomEnum(Size)
        coloured = s.CustomEnum(Colour, default=Colour.GREEN)

    return Enums


def nested(s: ModuleType) -> Any:
    class Line(s.Record):
        item = s.String()
        count = s.Integer(default=1)

    class Order(s.Record):
        _avro_namespace = "shop.orders"
        first = Line
        second = Line()
        needed = Line(required=True)
        lines = s.Array(Line())
        by_name = s.Map(Line())
        deep = s.Array(s.Map(s.Array(s.Integer())))

    return Order


def sorted_fields(s: ModuleType) -> Any:
    class Sorted(s.Record):
        _sorted_fields = True
        b = s.String()
        a = s.Integer()
        c = Size

    return Sorted


def derived(s: ModuleType) -> Any:
    class Base(s.Record):
        a = s.String()

    class Derived(Base):
        b = s.Integer()

    return Derived


def namespaces(s: ModuleType) -> Any:
    class Inner(s.Record):
        _avro_namespace = "shop.inner"
        a = s.String()

    class Outer(s.Record):
        _avro_namespace = "shop.outer"
        x = Inner()
        y = Inner()
        z = s.Array(Inner())

    return Outer


RECORDS = (flat, required, defaults, enums, nested, sorted_fields, derived, namespaces)


@pytest.mark.parametrize("define", RECORDS)
def test_a_record_definition_equals_the_official_definition(define: Any) -> None:
    theirs, ours = (define(package).schema() for package in PACKAGES)
    assert json.dumps(ours) == json.dumps(theirs)


@pytest.mark.parametrize("define", RECORDS)
def test_the_schema_info_of_json_equals_the_official_schema_info(define: Any) -> None:
    theirs, ours = (package.JsonSchema(define(package)).schema_info() for package in PACKAGES)
    assert ours.schema_data.decode() == theirs.schema()
    assert (ours.name, ours.type) == (theirs.name(), pb.Schema.Json)


def test_the_schema_info_of_text_and_protobuf_equals_the_official_schema_info() -> None:
    for name, arguments in {"StringSchema": (), "ProtobufNativeSchema": (pb.Schema,)}.items():
        theirs, ours = (getattr(one, name)(*arguments).schema_info() for one in PACKAGES)
        assert (ours.name, ours.schema_data.decode()) == (theirs.name(), theirs.schema())
        assert pb.Schema.Type.Name(ours.type).upper() == theirs.schema_type().name.replace("_", "")


VALUES: tuple[tuple[Any, dict[str, Any]], ...] = (
    (flat, {}),
    (flat, {"flag": True, "small": 1, "big": 2**40, "low": 1.5, "high": 2, "raw": b"x"}),
    (flat, {"text": b"\xc3\xbc", "raw": "text", "unknown": 1}),
    (required, {"flag": True, "number": 0, "text": "", "names": [], "figures": {}}),
    (
        required,
        {"number": 1, "text": "", "size": Size.LARGE, "names": ["a"], "figures": {}},
    ),
    (defaults, {}),
    (defaults, {"flag": None, "number": None, "size": "SMALL", "names": None}),
    (enums, {"plain": "LARGE", "coloured": 1}),
    (enums, {"plain": Size.SMALL, "again": None, "coloured": Colour.RED}),
    (nested, {}),
    (nested, {"first": {"item": "tea", "count": 2}, "second": None}),
    (nested, {"lines": [{"item": "tea"}, {"count": 3}], "by_name": {"a": {"item": "tea"}}}),
    (nested, {"deep": [{"a": [1, 2]}, {}]}),
    (namespaces, {"x": {"a": "1"}, "z": []}),
)


@pytest.mark.parametrize(("define", "fields"), VALUES)
def test_each_client_reads_json_of_the_other_client(define: Any, fields: dict[str, Any]) -> None:
    theirs, ours = (package.JsonSchema(define(package)) for package in PACKAGES)
    their_data = theirs.encode(theirs._record_cls(**fields))
    our_data = ours.encode(ours._record_cls(**fields))
    assert json.loads(our_data) == json.loads(their_data)
    assert json.loads(ours.encode(ours.decode(their_data))) == json.loads(their_data)
    assert json.loads(theirs.encode(theirs.decode(our_data))) == json.loads(our_data)


WRONG: tuple[tuple[Any, dict[str, Any]], ...] = (
    (flat, {"nothing": 1}),
    (flat, {"flag": "yes"}),
    (flat, {"small": "1"}),
    (flat, {"low": "1"}),
    (flat, {"text": 1}),
    (required, {"number": None}),
    (required, {"names": "a"}),
    (required, {"names": [1]}),
    (required, {"figures": {"a": "1"}}),
    (required, {"figures": {1: 1.0}}),
    (enums, {"plain": "TINY"}),
    (enums, {"coloured": 7}),
    (nested, {"first": "tea"}),
    (nested, {"lines": ["tea"]}),
)


@pytest.mark.parametrize(("define", "fields"), WRONG)
def test_both_clients_refuse_a_value_of_another_type(define: Any, fields: dict[str, Any]) -> None:
    for package in PACKAGES:
        with pytest.raises(TypeError):
            define(package)(**fields)


def test_both_clients_refuse_unknown_fields_and_values_of_another_class() -> None:
    for package in PACKAGES:
        record = flat(package)()
        with pytest.raises(AttributeError):
            record.missing = 1
        with pytest.raises(TypeError):
            package.JsonSchema(nested(package)).encode(record)
        with pytest.raises(TypeError):
            package.StringSchema().encode(b"bytes")
        with pytest.raises(TypeError):
            package.BytesSchema().encode("text")


ONE, TWO = (
    {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]}
    for name, field in (("One", "a"), ("Two", "b"))
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "int", "logicalType": "date"}, date(1969, 1, 2)),
        ({"type": "int", "logicalType": "time-millis"}, time(1, 2, 3, 4000)),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("-1.5")),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=7)),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ([ONE, TWO], {"b": 1}),
        (["null", "float", "double"], 0.1),
        (["null", "int", "long"], 2**40),
        (["int", "string", {"type": "array", "items": "int"}], [1]),
        ({"type": "map", "values": ["null", "boolean"]}, {"a": None, "b": True}),
    ],
)
def test_avro_encoded_by_a_definition_equals_the_official_bytes(kind: Any, value: Any) -> None:
    fields = [{"name": "a", "type": kind}, {"name": "b", "type": ["null", "int"]}]
    definition = {"type": "record", "name": "R", "fields": fields}
    theirs, ours = (package.AvroSchema(None, definition) for package in PACKAGES)
    encoded = ours.encode({"a": value})
    assert encoded == theirs.encode({"a": value})
    assert ours.decode(encoded) == theirs.decode(encoded) == {"a": value, "b": None}


def test_every_official_schema_name_is_exported() -> None:
    official = {name for name in vars(pulsar.schema) if not name.startswith("_")}
    modules = {"definition", "schema", "schema_avro", "schema_protobuf"}
    assert official - modules <= set(client.schema.__all__)


SENT: dict[str, tuple[Any, Any]] = {
    "text": (lambda s: s.StringSchema(), lambda _: "tea \xfc"),
    "bytes": (lambda s: s.BytesSchema(), lambda _: b"\x00\xff"),
    "record": (
        lambda s: s.JsonSchema(nested(s)),
        lambda schema: schema._record_cls(first={"item": "tea"}, deep=[{"a": [1]}]),
    ),
    "enums": (
        lambda s: s.JsonSchema(enums(s)),
        lambda schema: schema._record_cls(coloured=Colour.RED),
    ),
    "avro": (
        lambda s: s.AvroSchema(nested(s)),
        lambda schema: schema._record_cls(first={"item": "tea"}, needed={}, deep=[{"a": [1]}]),
    ),
    "protobuf": (
        lambda s: s.ProtobufNativeSchema(pb.KeyValue),
        lambda _: pb.KeyValue(key="a", value="b"),
    ),
}


@pytest.mark.parametrize("name", SENT)
async def test_values_pass_between_both_clients_with_the_same_schema_version(name: str) -> None:
    define, value_of = SENT[name]
    theirs, ours = (define(package) for package in PACKAGES)
    topic = f"persistent://public/default/schemas-{name}"
    async with cluster() as parts, Client(parts.broker.service_url) as client:
        consumer = await client.subscribe(topic, "s", schema=ours)
        # The official client sends, then waits for this client's message
        answer = asyncio.create_task(
            with_client(parts, "broker", lambda official: ask(official, topic, theirs, value_of))
        )
        question = await consumer.receive()
        producer = await client.create_producer(f"{topic}-back", schema=ours)
        await producer.send(value_of(ours))
        assert await answer == theirs.encode(value_of(theirs))
        assert ours.encode(question.value()) == ours.encode(value_of(ours))
        assert question.int_schema_version() == (-1 if name == "bytes" else 0)


def ask(official: Any, topic: str, schema: Any, value_of: Any) -> object:
    """Send a value and return the reply, as the official client reads both."""
    consumer = official.subscribe(f"{topic}-back", "s", schema=schema)
    official.create_producer(topic, schema=schema).send(value_of(schema))
    message = consumer.receive(timeout_millis=20_000)
    assert message.schema_version() in ("", "\0" * 8)
    return schema.encode(message.value())
