"""Definitions of PROTOBUF_NATIVE: JSON with the descriptors of a message."""

from __future__ import annotations

import base64
import binascii
import json

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

PROTOBUF_NATIVE = "PROTOBUF_NATIVE"
_SET, _ROOT, _FILE = "fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName"


def unreadable(data: bytes) -> str:
    """Return the reason why a definition is unreadable; empty for a readable definition."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    if not isinstance(given, dict) or not isinstance(given.get(_SET), str):
        return f"it has no {_SET}"
    if not isinstance(given.get(_ROOT), str) or not isinstance(given.get(_FILE), str):
        return f"it has no {_ROOT} or no {_FILE}"
    try:
        descriptors = FileDescriptorSet.FromString(base64.b64decode(given[_SET], validate=True))
    except (binascii.Error, DecodeError) as error:
        return f"its {_SET} cannot be read: {error}"
    if given[_FILE] not in (file.name for file in descriptors.file):
        return f"its {_SET} lacks the file {given[_FILE]!r}"
    return ""


def root_message(data: bytes) -> str:
    """Return the message name of a readable definition."""
    name: str = json.loads(data)[_ROOT]
    return name
