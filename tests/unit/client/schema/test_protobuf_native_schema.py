import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

import proto.PulsarApi_pb2 as pb
from client.schema import ProtobufNativeSchema


def test_the_definition_contains_the_file_descriptor_of_the_class() -> None:
    info = ProtobufNativeSchema(pb.KeyValue).schema_info()
    assert info is not None
    definition = json.loads(info.schema_data)
    whole = FileDescriptorSet.FromString(base64.b64decode(definition["fileDescriptorSet"]))
    assert info.type == pb.Schema.ProtobufNative
    assert definition["rootMessageTypeName"] == "pulsar.proto.KeyValue"
    assert [file.name for file in whole.file] == [definition["rootFileDescriptorName"]]


def test_an_encoded_message_is_decoded_unchanged() -> None:
    schema = ProtobufNativeSchema(pb.KeyValue)
    value = pb.KeyValue(key="a", value="b")
    assert schema.decode(schema.encode(value)) == value


def test_other_classes_values_and_bytes_are_refused() -> None:
    schema = ProtobufNativeSchema(pb.KeyValue)
    with pytest.raises(TypeError, match="ProtobufNativeSchema takes a class of protoc, not <class"):
        ProtobufNativeSchema(int)  # type: ignore[type-var] - that it is refused is the point
    with pytest.raises(TypeError, match="ProtobufNativeSchema encodes KeyValue"):
        schema.encode(FileDescriptorProto())
    with pytest.raises(ValueError, match="2 bytes cannot be read as"):
        schema.decode(b"\xff\xff")
