"""Schemas accepted as versions: types, definitions and strategies."""

import pytest

from broker.schemas.checks import check_readable
from broker.schemas.errors import SchemaRefusedError
from broker.schemas.schema import Schema, joined
from broker.stores.store import StoredSchema
from tests.support.schemas import checks, field, optional, record, stored

A, WIDER, WITH_MUST, OTHER = (
    record(field("a")),
    record(field("a"), optional("b")),
    record(field("a"), field("b")),
    record(field("c")),
)
PRIMITIVE = "Invalid schema definition data for primitive schemas :length of schema data should be "


async def text_of(schema: Schema, existing: list[StoredSchema], strategy: str) -> str:
    """Return the refusal; empty for compatible schemas."""
    try:
        await checks().check(schema, existing, strategy)
    except SchemaRefusedError as error:
        return error.refusal.text
    return ""


# Accepted by a real broker for AVRO (see the recorded strategies).
@pytest.mark.parametrize(
    ("strategy", "wider", "with_must", "other"),
    [
        ("ALWAYS_INCOMPATIBLE", False, False, False),
        ("ALWAYS_COMPATIBLE", True, True, True),
        ("BACKWARD", True, False, False),
        ("FORWARD", True, True, False),
        ("FULL", True, False, False),
        ("BACKWARD_TRANSITIVE", True, False, False),
        ("FORWARD_TRANSITIVE", True, True, False),
        ("FULL_TRANSITIVE", True, False, False),
    ],
)
async def test_each_strategy_accepts_exactly_its_compatible_avro_schemas(
    strategy: str, wider: bool, with_must: bool, other: bool
) -> None:
    found = [
        await text_of(Schema("AVRO", one), [stored(0, A)], strategy)
        for one in (WIDER, WITH_MUST, OTHER)
    ]
    assert [not text for text in found] == [wider, with_must, other]
    assert all(f"with strategy {strategy}: " in text for text in found if text)


@pytest.mark.parametrize("strategy", ["BACKWARD", "FORWARD", "FULL"])
async def test_only_transitive_strategies_check_versions_before_the_newest(strategy: str) -> None:
    existing = [
        stored(0, record(optional("a"))),
        stored(1, record(optional("a"), optional("b"))),
        stored(2, record(optional("a"))),
    ]
    changed = {"name": "b", "type": ["null", "string"], "default": None}
    new = Schema("AVRO", record(optional("a"), changed))
    assert not await text_of(new, existing, strategy)
    assert await text_of(new, existing, f"{strategy}_TRANSITIVE")


async def test_a_change_of_schema_type_is_refused_except_with_always_compatible() -> None:
    existing, text = [stored(0, A)], Schema("STRING", b"")
    assert await text_of(text, existing, "FULL") == (
        "Incompatible schema: exists schema type AVRO, new schema type STRING"
    )
    assert not await text_of(text, existing, "ALWAYS_COMPATIBLE")


async def test_primitive_schemas_are_compatible_except_with_always_incompatible() -> None:
    existing, new = [stored(0, b"", "NONE")], Schema("NONE", b"x")
    assert not await text_of(new, existing, "FULL")
    assert await text_of(new, existing, "ALWAYS_INCOMPATIBLE") == (
        "Schema compatibility strategy is ALWAYS_INCOMPATIBLE"
    )


async def test_an_equal_definition_is_found_despite_docs_and_aliases() -> None:
    existing = [stored(4, A), stored(5, WIDER)]
    documented = record(field("a", doc="d"), doc="x", aliases=["Old"])
    found = [
        await checks().version_of(Schema("AVRO", one), existing, None)
        for one in (documented, WIDER, record(field("a", order="descending")))
    ]
    assert found == [4, 5, None]


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("INT32", b"xx", f"{PRIMITIVE}zero, but 2 bytes is found"),
        ("STRING", b"{}", "Invalid schema definition data for string schema : '{}'"),
        ("AUTO_CONSUME", b"", "Schema AUTO_CONSUME is a client-side schema type"),
        ("AUTO", b"", "Schema AUTO is a client-side schema type"),
    ],
)
def test_invalid_definitions_and_client_side_types_are_refused(
    kind: str, data: bytes, text: str
) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        check_readable(Schema(kind, data))
    assert caught.value.refusal.text == text
    assert caught.value.refusal.invalid


@pytest.mark.parametrize(
    ("kind", "data"),
    [("STRING", b""), ("STRING", b"null"), ("NONE", b"x"), ("EXTERNAL", b"x"), ("INSTANT", b"")],
)
def test_definitions_of_types_without_a_check_are_accepted(kind: str, data: bytes) -> None:
    check_readable(Schema(kind, data))


# -- KEY_VALUE ------------------------------------------------------------------------------------


def pair(key: str, value: str, *data: bytes) -> Schema:
    properties = {"key.schema.type": key, "value.schema.type": value}
    return Schema("KEY_VALUE", joined(*(data or (b"", b""))), properties)


async def test_key_and_value_schemas_are_checked_separately() -> None:
    first = pair("AVRO", "AVRO", A, A)
    existing = [StoredSchema(0, "KEY_VALUE", first.data, first.properties)]
    assert not await text_of(pair("AVRO", "AVRO", WIDER, A), existing, "FULL")
    assert "strategy FULL" in await text_of(pair("AVRO", "AVRO", A, OTHER), existing, "FULL")
    assert await text_of(pair("AVRO", "STRING", A, b""), existing, "FULL") == (
        "Key schemas or Value schemas are different schema type, from key schema type is AVRO and "
        "to key schema is AVRO, from value schema is AVRO and to value schema is STRING"
    )


async def test_unreadable_key_or_value_schemas_are_refused() -> None:
    assert PRIMITIVE in await text_of(pair("INT32", "INT32", b"x", b""), [], "FULL")
    text = await text_of(pair("AVRO", "AVRO", A, b"nonsense"), [], "FULL")
    assert text == "Invalid schema definition data for AVRO schema"
