import pytest

import proto.PulsarApi_pb2 as pb
from client.schema import BytesSchema, Schema, StringSchema


def test_a_bytes_schema_passes_bytes_and_has_no_schema_info() -> None:
    schema = BytesSchema()
    assert schema.encode(b"a") == schema.decode(b"a") == b"a"
    assert schema.schema_info() is None


def test_a_string_schema_encodes_utf_8() -> None:
    schema = StringSchema()
    assert schema.encode("ü") == b"\xc3\xbc"
    assert schema.decode(b"\xc3\xbc") == "ü"


def test_a_custom_schema_has_its_definition_in_schema_info() -> None:
    schema = Schema(dict, pb.Schema.Json, {"type": "record"}, "mine")
    info = schema.schema_info()
    assert info == pb.Schema(
        name="mine", type=pb.Schema.Json, schema_data=b'{\n "type": "record"\n}'
    )


@pytest.mark.parametrize(("schema", "value"), [(BytesSchema(), "a"), (StringSchema(), b"a")])
def test_a_value_of_another_class_is_refused(schema: Schema, value: object) -> None:
    with pytest.raises(TypeError, match=f"{schema} encodes"):
        schema.encode(value)
