"""Functions that build error commands, and checks of a command's body and of its maps.

All outgoing errors are made here, so that their sizes are bounded by proto.excerpts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.excerpts import SCHEMAS_TEXT_BYTES, TEXT_BYTES, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable

Type = pb.BaseCommand
NO_REQUEST = 2**64 - 1
"""The request id of a command that belongs to no request: -1."""


def check_keys(*maps: Iterable[pb.KeyValue | pb.KeyLongValue]) -> None:
    """Check that no map of a command repeats a key.

    Raises:
        RemoteProtocolError: A key is repeated; the connection closes (recorded).
    """
    for pairs in maps:
        keys = [pair.key for pair in pairs]
        if len(set(keys)) < len(keys):
            raise RemoteProtocolError("a command with a map that repeats a key")


def error_command(request_id: int, error: pb.ServerError.ValueType, message: str) -> pb.BaseCommand:
    """Build an ERROR command that answers a request."""
    return pb.BaseCommand(
        type=Type.ERROR,
        error=pb.CommandError(request_id=request_id, error=error, message=_shown(error, message)),
    )


def success_command(request_id: int) -> pb.BaseCommand:
    """Build the SUCCESS command that answers a request."""
    return pb.BaseCommand(
        type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=request_id)
    )


def _shown(error: pb.ServerError.ValueType, message: str) -> str:
    most = SCHEMAS_TEXT_BYTES if error == pb.IncompatibleSchema else TEXT_BYTES
    return excerpt(message, most)


def lookup_failed(request_id: int, error: pb.ServerError.ValueType, message: str) -> pb.BaseCommand:
    """Build a failed LOOKUP_RESPONSE, since clients do not accept ERROR for a lookup."""
    response = pb.CommandLookupTopicResponse(
        request_id=request_id,
        response=pb.CommandLookupTopicResponse.Failed,
        error=error,
        message=excerpt(message),
    )
    return pb.BaseCommand(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=response)


def partitions_failed(
    request_id: int, error: pb.ServerError.ValueType, message: str
) -> pb.BaseCommand:
    """Build a failed PARTITIONED_METADATA_RESPONSE."""
    response = pb.CommandPartitionedTopicMetadataResponse(
        request_id=request_id,
        response=pb.CommandPartitionedTopicMetadataResponse.Failed,
        error=error,
        message=excerpt(message),
    )
    return pb.BaseCommand(
        type=Type.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=response
    )


def get_schema_failed(
    request_id: int, error: pb.ServerError.ValueType, message: str
) -> pb.BaseCommand:
    """Build a failed GET_SCHEMA_RESPONSE, since the C++ client does not accept ERROR instead."""
    response = pb.CommandGetSchemaResponse(
        request_id=request_id, error_code=error, error_message=_shown(error, message)
    )
    return pb.BaseCommand(type=Type.GET_SCHEMA_RESPONSE, getSchemaResponse=response)


def get_or_create_schema_failed(
    request_id: int, error: pb.ServerError.ValueType, message: str
) -> pb.BaseCommand:
    """Build a failed GET_OR_CREATE_SCHEMA_RESPONSE."""
    response = pb.CommandGetOrCreateSchemaResponse(
        request_id=request_id, error_code=error, error_message=_shown(error, message)
    )
    kind = Type.GET_OR_CREATE_SCHEMA_RESPONSE
    return pb.BaseCommand(type=kind, getOrCreateSchemaResponse=response)


def with_body(command: pb.BaseCommand, field: str) -> pb.BaseCommand:
    """Return the command unchanged after checking that its body, the field ``field``, is present.

    Raises:
        RemoteProtocolError: The body is missing.
    """
    if not command.HasField(field):  # type: ignore[arg-type]
        raise RemoteProtocolError(f"{Type.Type.Name(command.type)} without its body")
    return command
