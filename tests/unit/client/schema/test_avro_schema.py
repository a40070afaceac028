import io
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import avro.io
import avro.schema
import pytest
from pydantic import BaseModel

import proto.PulsarApi_pb2 as pb
from client.messages.message import EntryHead, Message
from client.schema import (
    Array,
    AvroSchema,
    Bytes,
    CustomEnum,
    Integer,
    JsonSchema,
    Map,
    Record,
    String,
)
from client.schema.schema import Schema


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Line(Record):
    item = String()
    sizes = Array(CustomEnum(Size))


class Order(Record):
    customer = String(required=True)
    count = Integer()
    raw = Bytes()
    line = Line()
    by_name = Map(Line())


@dataclass
class Part:
    item: str
    size: Size


@dataclass
class Whole:
    part: Part
    parts: list[Part]
    at: datetime
    on: date
    by: UUID
    size: Size | None = None


class Model(BaseModel):
    parts: dict[str, Part]


ORDER = Order(
    customer="anna",
    count=2,
    raw=b"\x00\xff",
    line=Line(item="tea", sizes=[Size.LARGE]),
    by_name={"a": Line(item="mint")},
)
WHOLE = Whole(
    Part("tea", Size.SMALL),
    [Part("mint", Size.LARGE)],
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    date(2026, 1, 2),
    UUID(int=7),
    Size.LARGE,
)
DEFINITION = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}]}


def test_a_record_is_encoded_like_the_avro_library() -> None:
    buffer = io.BytesIO()
    definition = avro.schema.make_avsc_object(Order.schema())
    fields = {
        "customer": "anna",
        "count": 2,
        "raw": b"\x00\xff",
        "line": {"item": "tea", "sizes": ["LARGE"]},
        "by_name": {"a": {"item": "mint", "sizes": None}},
    }
    avro.io.DatumWriter(definition).write(fields, avro.io.BinaryEncoder(buffer))
    data = AvroSchema(Order).encode(ORDER)
    assert data == buffer.getvalue()


def test_already_encoded_bytes_are_sent_unchanged() -> None:
    schema = AvroSchema(Order)
    data = schema.encode(ORDER)
    assert schema.encode(data) is data


@pytest.mark.parametrize(
    "value", [ORDER, WHOLE, Model(parts={"a": Part("tea", Size.SMALL)})], ids=lambda v: type(v)
)
def test_an_encoded_value_is_decoded_unchanged(value: object) -> None:
    schema = AvroSchema(type(value))
    found = schema.decode(schema.encode(value))
    assert type(found) is type(value)
    assert found == value


def test_a_definition_without_a_class_encodes_and_decodes_dicts() -> None:
    schema = AvroSchema(None, DEFINITION)
    assert schema.encode({"a": -1}) == b"\x01"
    assert schema.decode(b"\x01") == {"a": -1}


def message(data: bytes, schema: Schema) -> Message:
    """A message of no batch."""
    entry = EntryHead(pb.MessageMetadata(), pb.CommandMessage(), "t", schema)
    return Message(entry, None, data, -1)


def test_an_older_schema_version_is_read_by_its_own_definition() -> None:
    class Older(Record):
        count = Integer(required=True)
        gone = String()

    class Newer(Record):
        added = String(default="new", required=True, required_default=True)
        count = Integer(required=True)

    older, newer = AvroSchema(Older), AvroSchema(Newer)
    info = older.schema_info()
    assert info is not None
    decoding = newer.decoding_of(info)
    found = decoding.decode_message(message(older.encode(Older(count=3, gone="x")), newer))
    assert found == Newer(count=3, added="new")


def test_a_renamed_record_is_still_readable() -> None:
    def version(name: str, namespace: str | None) -> AvroSchema:
        definition: dict[str, Any] = {**DEFINITION, "name": name}
        if namespace is not None:
            definition["namespace"] = namespace
        return AvroSchema(None, definition)

    older, newer = version("Old", "shop"), version("New", "market")
    info = older.schema_info()
    assert info is not None
    found = newer.decoding_of(info).decode_message(message(older.encode({"a": 5}), newer))
    assert found == {"a": 5}


def test_a_schema_of_another_type_is_refused() -> None:
    info = JsonSchema(Order).schema_info()
    assert info is not None
    with pytest.raises(ValueError, match="the topic's schema is Json, not Avro"):
        AvroSchema(Order).decoding_of(info)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "Expecting property name"),
        ('"nothing"', "the definition breaks Avro's rules"),
        ('{"type": "record"}', "the definition breaks Avro's rules"),
        ("1", "the definition breaks Avro's rules"),
    ],
)
def test_an_invalid_writer_definition_is_refused(text: str, sentence: str) -> None:
    info = pb.Schema(name="", type=pb.Schema.Avro, schema_data=text.encode())
    with pytest.raises(ValueError, match=sentence):
        AvroSchema(None, {"type": "record", "name": "R", "fields": []}).decoding_of(info)


@pytest.mark.parametrize(
    ("record_cls", "definition"), [(None, None), (dict, DEFINITION), (int, None)]
)
def test_unsupported_classes_and_missing_definitions_are_refused(record_cls, definition) -> None:
    with pytest.raises(TypeError, match="AvroSchema takes a Record, a dataclass"):
        AvroSchema(record_cls, definition)


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(TypeError, match="AvroSchema encodes Order, not Line"):
        AvroSchema(Order).encode(Line())
    with pytest.raises(TypeError, match="AvroSchema encodes dict, not Line"):
        AvroSchema(None, DEFINITION).encode(Line())


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="the value does not fit its schema"):
        AvroSchema(Order).encode(Order())


@pytest.mark.parametrize("data", [b"", b"\x06an", b"\x00\x07", b"\xff" * 20])
def test_bytes_that_do_not_fit_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="bytes cannot be read as Avro"):
        AvroSchema(Order).decode(data)


def test_schema_info_carries_the_avro_definition() -> None:
    info = AvroSchema(Order).schema_info()
    assert info is not None
    assert (info.name, info.type) == ("AVRO", pb.Schema.Avro)
    assert json.loads(info.schema_data) == Order.schema()
