import pytest

from broker.schemas.schema import Schema, TruncatedKeyValueError, as_text, halves, joined, of_text


def schema(data: bytes) -> Schema:
    return Schema("KEY_VALUE", data, {"key.schema.type": "STRING", "value.schema.type": "AVRO"})


def test_joined_key_and_value_schemas_are_split_again() -> None:
    key, value = halves(schema(joined(b"", b'"int"')))
    assert (key.kind, key.data, value.kind, value.data) == ("STRING", b"", "AVRO", b'"int"')


def test_a_negative_length_is_an_empty_definition() -> None:
    assert [half.data for half in halves(schema(b"\xff" * 8))] == [b"", b""]


@pytest.mark.parametrize(
    "data", [b"", b"null", b"\0\0\0\1", b"\0\0\0\1x\0\0\0", joined(b"", b"x")[:-1]]
)
def test_truncated_key_value_data_is_refused(data: bytes) -> None:
    with pytest.raises(TruncatedKeyValueError):
        halves(schema(data))


def test_a_key_value_schema_is_converted_from_and_to_json_for_rest() -> None:
    text = '{"key":"","value":{"type":"int"}}'
    data = of_text(text)
    assert data == joined(b"", b'{"type":"int"}')
    assert as_text(schema(data)) == text


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"key": ""}'])
def test_malformed_rest_text_of_a_key_value_schema_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        of_text(text)
