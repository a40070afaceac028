"""Definitions, read and written as by Java's library."""

import json

import pytest

from broker.schemas.avro.definition import UnreadableDefinitionError, read, shown, written
from tests.support.schemas import field, record

ENUM = {"type": "enum", "name": "E", "namespace": "n.m", "symbols": ["X", "Y"], "default": "X"}
# As printed by a real broker.
SHOWN = """{
  "type" : "record",
  "name" : "A",
  "namespace" : "my.ns",
  "doc" : "top",
  "fields" : [ {
    "name" : "a",
    "type" : "int",
    "doc" : "hé\\"\\n",
    "default" : 3,
    "order" : "ignore",
    "aliases" : [ "z" ],
    "p" : {
      "q" : [ 1, 2.5, true, null, { } ]
    }
  }, {
    "name" : "e",
    "type" : {
      "type" : "enum",
      "name" : "E",
      "namespace" : "n.m",
      "symbols" : [ "X", "Y" ],
      "default" : "X"
    }
  }, {
    "name" : "l",
    "type" : {
      "type" : "array",
      "items" : [ "null", "string" ]
    },
    "default" : [ ]
  }, {
    "name" : "self",
    "type" : [ "null", "A" ],
    "default" : null
  }, {
    "name" : "again",
    "type" : "n.m.E"
  }, {
    "name" : "d",
    "type" : {
      "type" : "bytes",
      "logicalType" : "decimal",
      "precision" : 4,
      "scale" : 2
    }
  } ],
  "prop" : "v",
  "aliases" : [ "Old", "x.Y" ]
}"""


def test_a_definition_is_printed_as_by_the_java_library() -> None:
    fields = (
        field(
            "a",
            default=3,
            doc='hé"\n',
            aliases=["z"],
            order="ignore",
            p={"q": [1, 2.5, True, None, {}]},
        ),
        field("e", ENUM),
        field("l", {"type": "array", "items": ["null", "string"]}, default=[]),
        field("self", ["null", "A"], default=None),
        field("again", "n.m.E"),
        field("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
    )
    data = record(*fields, namespace="my.ns", doc="top", aliases=["Old", "x.Y"], prop="v")
    assert shown(read(data)) == SHOWN


def test_a_written_definition_reads_back_equal() -> None:
    first = read(json.dumps(json.loads(SHOWN)).encode())
    again = read(json.dumps(written(first)).encode())
    assert shown(again) == SHOWN


@pytest.mark.parametrize(
    "same",
    [
        record(field("a"), doc="d"),
        record(field("a", doc="d")),
        record(field("a"), aliases=["Z"]),
        record(field("a", {"type": "int"})),
    ],
)
def test_docs_and_aliases_are_ignored_in_comparison(same: bytes) -> None:
    assert _comparable(same) == _comparable(record(field("a")))


@pytest.mark.parametrize(
    "other",
    [
        record(field("a", order="descending")),
        record(field("a"), x=1),
        record(field("a", x=1)),
        record(field("a"), namespace="q"),
        record(field("a"), name="B"),
        record(field("a", default=2)),
    ],
)
def test_order_properties_names_and_defaults_count_in_comparison(other: bytes) -> None:
    assert _comparable(other) != _comparable(record(field("a")))


def _comparable(data: bytes) -> object:
    return written(read(data), comparable=True)


@pytest.mark.parametrize(
    "data",
    [
        record(field("a"), namespace="my.Test$"),
        record(field("a"), name="Te$t"),
        record(field("größe"), name="Größe"),
        record(field("a", default="x")),
        b'"int"',
        b'{"type":"enum","name":"E","symbols":["A"]}',
    ],
)
def test_definitions_accepted_by_a_real_broker_are_readable(data: bytes) -> None:
    read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"nonsense",
        b"1",
        b"\xff",
        b'"A"',
        b"[" * 5_000,
        record(field("a"), name="A-b"),
        record(field("a"), namespace="x-y"),
        record(field("a-b")),
        record(field("1a")),
        record(field("")),
        record(field("a"), field("a")),
        record(field("a", "nope")),
        record(field("a", ["int", "int"])),
        record(field("a", {"type": "array"})),
        record(field("a", {"type": "enum", "name": "E", "symbols": ["A-b"]})),
        record({"type": "int"}),
        b'{"type":"record","name":"A"}',
        b'{"type":"record","fields":[]}',
    ],
)
def test_definitions_refused_by_a_real_broker_are_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableDefinitionError):
        read(data)
