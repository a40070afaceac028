import struct

import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.message import EntryHead, Message
from client.schema import AutoConsumeSchema, AvroSchema

PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}]}


def decoded(info: pb.Schema, data: bytes) -> object:
    """Return a value read under a schema version."""
    schema = AutoConsumeSchema()
    entry = EntryHead(pb.MessageMetadata(), pb.CommandMessage(), "t", schema)
    return schema.decoding_of(info).decode_message(Message(entry, None, data, -1))


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("None", b"a", b"a"),
        ("String", b"\xc3\xbc", "ü"),
        ("Json", b'{"a": [1]}', {"a": [1]}),
        ("Bool", b"\x01", True),
        ("Int8", b"\xff", -1),
        ("Int16", b"\x01\x00", 256),
        ("Int32", struct.pack(">i", -5), -5),
        ("Int64", struct.pack(">q", 2**40), 2**40),
        ("Float", struct.pack(">f", 1.5), 1.5),
        ("Double", struct.pack(">d", 0.1), 0.1),
        pytest.param("Protobuf", b"a", b"a", id="unsupported: bytes"),
    ],
)
def test_values_are_decoded_by_the_topics_schema_type(
    kind: str, data: bytes, value: object
) -> None:
    info = pb.Schema(name="", type=pb.Schema.Type.Value(kind), schema_data=b"")
    assert decoded(info, data) == value


def test_an_avro_value_is_decoded_to_a_dict() -> None:
    schema = AvroSchema(None, PAIR)
    info = schema.schema_info()
    assert info is not None
    assert decoded(info, schema.encode({"a": 7})) == {"a": 7}


def test_a_number_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="b'abc' is no value of the topic's schema"):
        decoded(pb.Schema(name="", type=pb.Schema.Int32, schema_data=b""), b"abc")


def test_an_auto_consume_schema_cannot_encode() -> None:
    assert AutoConsumeSchema().schema_info() is None
    with pytest.raises(TypeError, match="give a producer the topic's own schema"):
        AutoConsumeSchema().encode(b"a")
