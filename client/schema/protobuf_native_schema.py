"""Values as protobuf messages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

import proto.PulsarApi_pb2 as pb
from client.schema.schema import Schema

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor


class ProtobufNativeSchema(Schema):
    """Sends protobuf messages.

    Args:
        record_cls: A class that protoc generated.

    Raises:
        TypeError: It is none.
    """

    def __init__(self, record_cls: type[Message]) -> None:
        found: object = record_cls
        if not (isinstance(found, type) and issubclass(found, Message)):
            raise TypeError(f"ProtobufNativeSchema takes a class of protoc, not {found!r:.80}")
        self._message_class = record_cls
        definition = _definition(record_cls.DESCRIPTOR)
        super().__init__(record_cls, pb.Schema.ProtobufNative, definition, "PROTOBUF_NATIVE")

    def encode(self, value: Message) -> bytes:
        """Return the message's bytes.

        Raises:
            TypeError: It is of another class.
        """
        self._validate_object_type(value)
        return value.SerializeToString()

    def decode(self, data: bytes) -> Message:
        """Return the message of bytes.

        Raises:
            ValueError: They are none of this class.
        """
        try:
            return self._message_class.FromString(data)
        except DecodeError as error:
            name = self._message_class.DESCRIPTOR.full_name
            raise ValueError(f"{len(data)} bytes cannot be read as {name}: {error}") from error


def _definition(descriptor: Any) -> dict[str, str]:  # noqa: ANN401 - as protoc's classes have it
    """Return a class's definition: its file, with all that this imports before it."""
    files: dict[str, FileDescriptorProto] = {}
    _add(descriptor.file, files)
    whole = FileDescriptorSet(file=files.values()).SerializeToString()
    return {
        "fileDescriptorSet": base64.b64encode(whole).decode(),
        "rootMessageTypeName": descriptor.full_name,
        "rootFileDescriptorName": descriptor.file.name,
    }


def _add(file: FileDescriptor, files: dict[str, FileDescriptorProto]) -> None:
    if file.name in files:
        return
    for imported in file.dependencies:
        _add(imported, files)
    files[file.name] = FileDescriptorProto()
    file.CopyToProto(files[file.name])
