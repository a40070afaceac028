"""Versions of schemas on the wire."""

from __future__ import annotations

import struct

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import RequestError

_VERSION = struct.Struct(">q")
NO_VERSION = b""
"""The version of a producer without a schema."""


def version_bytes(version: int) -> bytes:
    """Return a version as on the wire: 8 bytes, big-endian."""
    return _VERSION.pack(version)


def version_of_bytes(data: bytes) -> int:
    """Return the version in the first 8 bytes; further bytes are ignored, as recorded.

    Raises:
        RequestError: Fewer than 8 bytes.
    """
    if len(data) < _VERSION.size:
        raise RequestError(pb.IncompatibleSchema, f"a schema version has {_VERSION.size} bytes")
    version: int = _VERSION.unpack_from(data)[0]
    return version
