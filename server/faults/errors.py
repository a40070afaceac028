"""Error responses to each command, in the form that its client accepts as an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import proto.PulsarApi_pb2 as pb
from proto.commands import (
    NO_REQUEST,
    error_command,
    get_or_create_schema_failed,
    get_schema_failed,
    lookup_failed,
    partitions_failed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Type = pb.BaseCommand
_Error: TypeAlias = pb.ServerError.ValueType

_OF_REQUESTS: dict[int, Callable[[int, _Error, str], pb.BaseCommand]] = {
    Type.LOOKUP: lookup_failed,
    Type.PARTITIONED_METADATA: partitions_failed,
    Type.GET_SCHEMA: get_schema_failed,
    Type.GET_OR_CREATE_SCHEMA: get_or_create_schema_failed,
}


def _send_error(command: pb.BaseCommand, error: _Error, message: str) -> pb.BaseCommand:
    failed = pb.CommandSendError(
        producer_id=command.send.producer_id,
        sequence_id=command.send.sequence_id,
        error=error,
        message=message,
    )
    return Type(type=Type.SEND_ERROR, send_error=failed)


def _ack_error(command: pb.BaseCommand, error: _Error, message: str) -> pb.BaseCommand:
    response = pb.CommandAckResponse(
        consumer_id=command.ack.consumer_id,
        request_id=command.ack.request_id if command.ack.HasField("request_id") else None,
        error=error,
        message=message,
    )
    return Type(type=Type.ACK_RESPONSE, ackResponse=response)


def _stats_error(command: pb.BaseCommand, error: _Error, message: str) -> pb.BaseCommand:
    response = pb.CommandConsumerStatsResponse(
        request_id=command.consumerStats.request_id, error_code=error, error_message=message
    )
    return Type(type=Type.CONSUMER_STATS_RESPONSE, consumerStatsResponse=response)


_OF_COMMANDS: dict[int, Callable[[pb.BaseCommand, _Error, str], pb.BaseCommand]] = {
    Type.SEND: _send_error,
    Type.ACK: _ack_error,
    Type.CONSUMER_STATS: _stats_error,
}


def refusal(command: pb.BaseCommand, error: str, message: str) -> pb.BaseCommand:
    """Return the command that refuses another command.

    Args:
        command: The refused command; without a request id the connection gets an ERROR.
        error: The name of the error.
        message: Its text.
    """
    code = pb.ServerError.Value(error)
    of_command = _OF_COMMANDS.get(command.type)
    if of_command is not None:
        return of_command(command, code, message)
    # In Pulsar's protocol a body's field number equals the number of its type.
    field = Type.DESCRIPTOR.fields_by_number[command.type]
    request_id = getattr(getattr(command, field.name), "request_id", NO_REQUEST)
    return _OF_REQUESTS.get(command.type, error_command)(request_id, code, message)
