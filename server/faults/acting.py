"""The actions of injected faults on a connection; each action is a function.

Each function returns the frame to process now, possibly a different frame, or None. An error
response has the form that the command's client accepts as an error.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import proto.PulsarApi_pb2 as pb
from proto.commands import (
    NO_REQUEST,
    error_command,
    get_or_create_schema_failed,
    get_schema_failed,
    lookup_failed,
    partitions_failed,
)
from proto.frames import LENGTH_FIELD_BYTES, Frame, command_size_in
from server.faults.fault import (
    AnswerError,
    CloseConsumer,
    CloseProducer,
    CorruptChecksum,
    Delay,
    Disconnect,
    DrainSlowly,
    Drop,
    MoveTopic,
    StopReading,
)
from server.faults.selection import Client, body_of, topic_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.faults.holds import Holds
    from server.faults.registry import SetFault

_Type = pb.BaseCommand
IN_ORDER = frozenset(
    {_Type.CONNECT, _Type.SEND, _Type.ACK, _Type.FLOW}
    | {_Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, _Type.MESSAGE, _Type.SEND_RECEIPT}
)
"""Commands whose order matters: while one waits, later commands wait too."""
_CHECKSUM_MAGIC = b"\x0e\x01"


class Faulty(Client, Protocol):
    """An interface with the members of a client's connection that injected faults use."""

    def is_legal(self, kind: int) -> bool:
        """Return True if a command of this type is legal in the connection's present state."""

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command for the client."""

    def abort(self) -> None:
        """Close the connection immediately."""

    def take_no_more(self) -> None:
        """Ignore the client's further frames; earlier requests are still answered."""

    async def drain(self) -> None:
        """Ignore further requests, answer those in flight, and close the connection."""

    def close_producers(self, producer_id: int | None) -> None:
        """Close one producer, or all if given None, as if the server had decided to."""

    def close_consumers(self, consumer_id: int | None) -> None:
        """Close one consumer, or all if given None, as if the server had decided to."""

    def move_topic(self, topic: str, to: str | None) -> None:
        """Move a topic to the broker ``to``, or to any other broker if ``to`` is None."""


class Acting:
    """The objects of a connection that the actions of injected faults use.

    Attributes:
        client: The client's connection.
        holds: The held frames.
        slow_down: Limits reading to a number of bytes per second.
    """

    def __init__(
        self,
        client: Faulty,
        holds: Holds,
        slow_down: Callable[[SetFault, int], object],
    ) -> None:
        self.client = client
        self.holds = holds
        self.slow_down = slow_down
        self._ending: asyncio.Task[None] | None = None

    def end_politely(self) -> None:
        """Close the connection after all its requests are answered."""
        self.client.take_no_more()
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self.client.drain())


def _error(acting: Acting, _: SetFault, action: AnswerError, frame: Frame) -> Frame | None:
    command = frame.command()
    acting.client.send(refusal(command, action.error, action.message))
    if command.type == _Type.CONNECT:  # No broker keeps a connection whose CONNECT it refused.
        acting.end_politely()
    return None


def _delay(acting: Acting, found: SetFault, action: Delay, frame: Frame) -> Frame | None:
    # Copied, since its views would keep the whole received chunk.
    kept = Frame(frame.total_size, (memoryview(frame.body()),))
    in_order = frame.command_type() in IN_ORDER
    acting.holds.delay(found, kept, action.delay_ms / 1000, in_order=in_order)
    return None


def _drop(_: Acting, __: SetFault, ___: Drop, ____: Frame) -> Frame | None:
    return None


def _disconnect(acting: Acting, _: SetFault, action: Disconnect, frame: Frame) -> Frame | None:
    if action.at == "before":
        acting.client.abort()
        return None
    acting.end_politely()
    return frame


def _stop_reading(
    acting: Acting, found: SetFault, action: StopReading, frame: Frame
) -> Frame | None:
    acting.holds.stop(found, None if action.for_ms is None else action.for_ms / 1000)
    return frame


def _drain(acting: Acting, found: SetFault, action: DrainSlowly, frame: Frame) -> Frame | None:
    acting.slow_down(found, action.bytes_per_second)
    return frame


def _corrupt_checksum(_: Acting, __: SetFault, ___: CorruptChecksum, frame: Frame) -> Frame | None:
    body = bytearray(frame.body())
    at = LENGTH_FIELD_BYTES + command_size_in(frame.start(LENGTH_FIELD_BYTES))
    if body[at : at + 2] != _CHECKSUM_MAGIC or len(body) < at + 6:
        return frame  # The frame has no checksum.
    body[at + 5] ^= 1
    return Frame(frame.total_size, (memoryview(bytes(body)),))


def _close_producer(acting: Acting, _: SetFault, __: CloseProducer, frame: Frame) -> Frame | None:
    body = body_of(frame.command())
    acting.client.close_producers(getattr(body, "producer_id", None))
    return frame


def _close_consumer(acting: Acting, _: SetFault, __: CloseConsumer, frame: Frame) -> Frame | None:
    body = body_of(frame.command())
    acting.client.close_consumers(getattr(body, "consumer_id", None))
    return frame


def _move_topic(acting: Acting, _: SetFault, action: MoveTopic, frame: Frame) -> Frame | None:
    topic = topic_of(acting.client, frame.command())
    if topic:
        acting.client.move_topic(topic, action.to)
    return frame


ACTIONS: dict[type, Callable[[Acting, SetFault, Any, Frame], Frame | None]] = {
    AnswerError: _error,
    Delay: _delay,
    Drop: _drop,
    Disconnect: _disconnect,
    StopReading: _stop_reading,
    DrainSlowly: _drain,
    CorruptChecksum: _corrupt_checksum,
    CloseProducer: _close_producer,
    CloseConsumer: _close_consumer,
    MoveTopic: _move_topic,
}


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
    """Return the error response that a fault sends instead of processing a client's command.

    Args:
        command: The refused command; without a request id the connection gets an ERROR.
        error: The name of the error.
        message: The error's text.
    """
    code = pb.ServerError.Value(error)
    of_command = _OF_COMMANDS.get(command.type)
    if of_command is not None:
        return of_command(command, code, message)
    # In Pulsar's protocol a body's field number equals the number of its type.
    field = Type.DESCRIPTOR.fields_by_number[command.type]
    request_id = getattr(getattr(command, field.name), "request_id", NO_REQUEST)
    return _OF_REQUESTS.get(command.type, error_command)(request_id, code, message)
