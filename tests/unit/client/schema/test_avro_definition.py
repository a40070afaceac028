import json
from typing import Any

import pytest

from client.schema.avro_definition import AvroDefinition
from client.schema.record import MAX_DEPTH, as_avro

NODE = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": "n", "type": "null"}]}
MILLION_OF_BYTES = b"\x02" * 1_000_000


def definition(source: Any) -> AvroDefinition:
    return AvroDefinition(json.dumps(source))


def record(kind: Any, **options: Any) -> AvroDefinition:
    """Return a record with one field."""
    fields = [{"name": "a", "type": kind, **options}]
    return definition({"type": "record", "name": "R", "fields": fields})


BOOLEANS = {"type": "array", "items": "boolean"}
NOTHING = definition({"type": "record", "name": "R", "fields": []})


def nested(depth: int) -> Any:
    value = None
    for _ in range(depth):
        value = {"next": value}
    return value


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("int", True, "R.a is <True> of type <class 'bool'> expected int"),
        ("int", 2**31, "R.a is <2147483648> of type <class 'int'> expected int"),
        ("long", 2**63, "expected long"),
        ("long", 1.0, "expected long"),
        ("double", "NaN", "expected double"),
        ("double", 2**2000, "int too large to convert to float"),
        ("boolean", 1, "expected boolean"),
        ("string", b"x", "expected string"),
        ("string", None, "R.a. is None expected string"),
        ("string", "\ud800", "surrogates not allowed"),
        ("bytes", "x", "expected bytes"),
        (FIXED, b"x", "'size': 2"),
        (ENUM, "C", "'symbols': "),
        ({"type": "map", "values": "int"}, {1: 2}, "expected {'type': 'map'"),
        ({"type": "array", "items": "string"}, "abc", "expected {'type': 'array'"),
        ({"type": "array", "items": ["null", "int"]}, [1, "b"], "R.a is <b> of type"),
        (["null", "int"], "b", "expected int; R.a is <b> of type <class 'str'> expected null"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(
    kind: Any, value: object, sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"the value does not fit its schema: .*{sentence}"):
        record(kind).written({"a": value})


@pytest.mark.parametrize("outermost", [{"type": "map"}, ["null", {"type": "map"}]], ids=str)
def test_a_non_record_schema_is_parsed_once(outermost: Any) -> None:
    # A default spelled as text in JSON
    inner = {**EMPTY, "fields": [{"name": "a", "type": "bytes", "default": "\xff"}]}
    maps = outermost[-1] if isinstance(outermost, list) else outermost
    maps["values"] = inner
    found = definition(outermost)
    data = found.written({"k": {}})
    assert found.read(data) == found.read(data, found) == {"k": {"a": b"\xff"}}


def test_a_missing_field_becomes_null_or_its_default_and_an_extra_field_is_refused() -> None:
    assert record(["null", "int"]).written({}) == b"\x00"
    assert record("bytes", default="\xff").written({}) == b"\x02\xff"
    with pytest.raises(ValueError, match="None expected int"):
        record("int").written({})
    with pytest.raises(ValueError, match="more fields than the schema specifies: b"):
        record(["null", "int"]).written({"b": 1})


def test_a_record_in_a_union_is_selected_by_its_fields() -> None:
    one, two = (
        {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]}
        for name, field in (("One", "a"), ("Two", "b"))
    )
    assert record([one, two]).written({"a": {"b": 1}}) == b"\x02\x02"


def test_values_are_nested_at_most_to_the_depth_limit() -> None:
    found = definition(NODE)
    data = found.written(as_avro(nested(MAX_DEPTH)))
    assert found.read(data) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 10_000):
        with pytest.raises(ValueError, match="the value is more than 64 records"):
            as_avro(nested(depth))


def long_chain() -> dict[str, Any]:
    """Return records nested by name, none recursive."""
    fields: list[Any] = [{"name": "f", "type": {**EMPTY, "name": "N0"}}]
    for i in range(1, 300):
        inner = {"type": "record", "name": f"N{i}"}
        inner["fields"] = [{"name": "n", "type": ["null", f"N{i - 1}"]}]
        fields.append({"name": f"f{i}", "type": ["null", inner]})
    return {"type": "record", "name": "Chain", "fields": fields}


@pytest.mark.parametrize(
    "source",
    [
        NODE,
        {"type": "array", "items": NODE},
        {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]},
        long_chain(),
    ],
    ids=["node", "array", "endless", "chain"],
)
def test_bytes_nested_too_deeply_are_refused_without_crashing(source: Any) -> None:
    found = definition(source)
    assert found.is_deep
    with pytest.raises(ValueError, match="maximum recursion depth exceeded"):
        found.read(MILLION_OF_BYTES)


@pytest.mark.parametrize(
    "items", ["null", EMPTY, *({"type": "fixed", "name": "Z", "size": size} for size in (0, -1))]
)
def test_an_array_of_items_without_bytes_is_refused(items: Any) -> None:
    with pytest.raises(ValueError, match="the items of an array take no bytes: give them a field"):
        record({"type": "array", "items": items})


@pytest.mark.parametrize("count", [2**40, 2**62, -(2**62)])
@pytest.mark.parametrize(
    "kind",
    [
        "string",
        "bytes",
        {"type": "array", "items": "boolean"},
        {"type": "array", "items": ["null", EMPTY]},
        {"type": "map", "values": "null"},
    ],
    ids=str,
)
def test_an_announced_length_beyond_the_data_is_refused(kind: Any, count: int) -> None:
    data = definition("long").written(count)
    with pytest.raises(ValueError, match="bytes cannot be read as Avro: they end too early"):
        record(kind).read(data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "they end too early"),
        (b"\xff" * 1_000_000, "a number takes more than ten bytes"),
    ],
    ids=["2^62 items", "a number of a million bytes"],
)
def test_skipping_a_field_unknown_to_the_reader_stays_within_the_data(
    data: bytes, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        record(BOOLEANS).read(data, NOTHING)


def test_the_declared_length_of_a_block_is_ignored() -> None:
    # A block of one item, with a declared length of -3 bytes
    data = b"\x01\x05\x01\x00"
    assert record(BOOLEANS).read(data, NOTHING) == {}


@pytest.mark.parametrize(
    ("writer", "value", "reader", "found"),
    [
        ("int", 1, "double", 1.0),
        ("int", 1, ["null", "long"], 1),
        ("string", "ü", "bytes", "ü".encode()),
        (["null", "int"], 1, "int", 1),
        (ENUM, "B", {**ENUM, "symbols": ["A", "C"], "default": "C"}, "C"),
    ],
)
def test_a_value_is_converted_to_the_readers_type(writer, value, reader, found) -> None:
    written = record(writer)
    read = written.read(written.written({"a": value}), record(reader))
    assert read == {"a": found}
    assert type(read["a"]) is type(found)


def test_a_value_that_cannot_be_converted_to_the_reader_is_refused() -> None:
    written = record(["null", "int"])
    with pytest.raises(ValueError, match="bytes cannot be read as Avro: schema mismatch"):
        written.read(b"\x00", record("int"))
    with pytest.raises(ValueError, match="No default value for field b"):
        written.read(
            b"\x00", definition({**NODE, "fields": [{"name": "b", "type": "int"}], "name": "R"})
        )


def test_every_decoded_value_has_its_own_copy_of_a_default() -> None:
    writer = definition({"type": "record", "name": "R", "fields": []})
    reader = record({"type": "array", "items": "int"}, default=[1])
    writer.read(b"", reader)["a"].append(2)
    assert writer.read(b"", reader) == {"a": [1]}


def test_a_recursive_record_may_be_renamed() -> None:
    older = definition(
        {
            **NODE,
            "name": "Old",
            "namespace": "shop",
            "fields": [{"name": "next", "type": ["null", "Old"]}],
        }
    )
    newer = definition(NODE).also_named(older)
    assert older.read(older.written(nested(3)), newer) == nested(3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "1",
        '"R"',
        '{"type": "map"}',
        '{"type": {"type": "string"}}',
        '{"__fastavro_parsed": 1, "__named_schemas": {"X": "X"}, "type": "X"}',
        '{"type": "array", "items": ' * 3000 + '"int"' + "}" * 3000,
    ],
)
def test_an_invalid_definition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the definition breaks Avro's rules"):
        AvroDefinition(text)
