"""Dialogue commands as bytes, and received frames in recorded form.

Knows only framing and protobuf, so that faults in Floodgate's own code cannot hide faults in its
servers.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.json_format import ParseDict

from proto import PulsarApi_pb2 as pb
from tests.support.dialogues.dialogue import Seen
from tests.support.peers.frames import frame, split_message, with_checksum

MessageIds = dict[int, pb.MessageIdData]
"""Ids of stored messages by sequence id: message 3 is ``m3``."""

PROTOCOL_VERSION = 21
EARLIEST, LATEST = "earliest (2^64-1, 2^64-1)", "latest (2^63-1, 2^63-1)"
_ENDS = {EARLIEST: (1 << 64) - 1, LATEST: (1 << 63) - 1}
_NO_ENTRY = (1 << 64) - 1
NO_NUMBER = (1 << 64) - 1
"""A Java long of -1."""
NO_ENTRY_RECORDED = 1 << 32
"""An entry id of -1 in a recording."""
_TAIL_BYTES = 40
_PRODUCER, _PUBLISH_TIME = "p", 1
_BATCH = 3
"""Size of a partly acknowledged batch, unless ``batch_size`` says otherwise."""
_BODIES = {
    "PRODUCER": "producer",
    "CLOSE_PRODUCER": "close_producer",
    "SUBSCRIBE": "subscribe",
    "FLOW": "flow",
    "ACK": "ack",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": "redeliverUnacknowledgedMessages",
    "SEEK": "seek",
    "UNSUBSCRIBE": "unsubscribe",
    "CLOSE_CONSUMER": "close_consumer",
    "GET_LAST_MESSAGE_ID": "getLastMessageId",
    "CONSUMER_STATS": "consumerStats",
    "PING": "ping",
    "GET_SCHEMA": "getSchema",
    "GET_OR_CREATE_SCHEMA": "getOrCreateSchema",
    "PARTITIONED_METADATA": "partitionMetadata",
}
_NOT_FIELDS = frozenset(
    {"command", "message", "messages", "start_message", "ack_set", "batch_size"}
)


def connect_bytes() -> bytes:
    """Return the CONNECT of every dialogue connection."""
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    command.connect.client_version = "dialogue"
    command.connect.protocol_version = PROTOCOL_VERSION
    return frame(command)


def command_bytes(does: Mapping[str, Any], ids: MessageIds) -> bytes:
    """Return a dialogue's command as bytes; a SEND of several messages is several commands.

    Message fields are in protobuf's JSON, as are ``metadata`` and ``of_command``: additional fields
    of a SEND's metadata and of the SEND itself.

    Args:
        does: The command, by field names.
        ids: Of messages the command names.

    Raises:
        KeyError: Unknown message or command.
    """
    if does["command"] == "SEND":
        return b"".join(_send(does, number) for number in does["sequence_ids"])
    command = pb.BaseCommand(type=pb.BaseCommand.Type.Value(does["command"]))
    body: Any = getattr(command, _BODIES[does["command"]])
    body.SetInParent()
    for name, value in does.items():
        if name not in _NOT_FIELDS:
            _set(body, name, value)
    _name_messages(command, does, ids)
    return frame(command)


def _set(body: Any, name: str, value: Any) -> None:
    if isinstance(value, dict):
        ParseDict({name: value}, body)
        return
    field = body.DESCRIPTOR.fields_by_name[name]
    if isinstance(value, str) and field.enum_type is not None:
        value = field.enum_type.values_by_name[value].number
    elif name == "messagePermits":
        value &= 0xFFFF_FFFF
    setattr(body, name, value)


def _name_messages(command: pb.BaseCommand, does: Mapping[str, Any], ids: MessageIds) -> None:
    named = [_message_id(name, ids) for name in does.get("messages", ())]
    if named and does["command"] == "ACK":
        command.ack.message_id.extend(named)
    elif named:
        command.redeliverUnacknowledgedMessages.message_ids.extend(named)
    if "start_message" in does:
        command.subscribe.start_message_id.CopyFrom(_message_id(does["start_message"], ids))
    if "message" not in does:
        return
    one = _message_id(does["message"], ids)
    if "ack_set" in does:
        one.ack_set.extend(does["ack_set"])
        one.batch_size = does.get("batch_size", _BATCH)
    if does["command"] == "SEEK":
        command.seek.message_id.CopyFrom(one)
    else:
        command.ack.message_id.append(one)


def _message_id(name: str, ids: MessageIds) -> pb.MessageIdData:
    if name in _ENDS:
        return pb.MessageIdData(ledgerId=_ENDS[name], entryId=_ENDS[name])
    if name == "unknown":
        return pb.MessageIdData(ledgerId=999_999_999, entryId=0)
    known = ids[int(name.removeprefix("m"))]
    return pb.MessageIdData(ledgerId=known.ledgerId, entryId=known.entryId)


def _send(does: Mapping[str, Any], number: int) -> bytes:
    size = does["batch_of"]
    command = pb.BaseCommand(type=pb.BaseCommand.SEND)
    command.send.producer_id = does["producer_id"]
    command.send.sequence_id = number
    metadata = pb.MessageMetadata(producer_name=_PRODUCER, sequence_id=number)
    metadata.publish_time = _PUBLISH_TIME
    if "keys" in does:
        metadata.partition_key = does["keys"][does["sequence_ids"].index(number)]
    payload = f"m{number}".encode()
    if size > 1:
        command.send.num_messages = size
        metadata.num_messages_in_batch = size
        payload = b"".join(map(_in_batch, [f"m{number}.{index}" for index in range(size)]))
    ParseDict(does.get("metadata", {}), metadata)
    ParseDict(does.get("of_command", {}), command.send)
    return frame(command, with_checksum(metadata, payload, wrong=bool(does["bad_checksum"])))


def _in_batch(text: str) -> bytes:
    payload = text.encode()
    single = pb.SingleMessageMetadata(payload_size=len(payload)).SerializeToString()
    return struct.pack(">I", len(single)) + single + payload


def seen(connection: int, command: pb.BaseCommand, behind: bytes) -> Seen:
    """Return the recorded form of a received frame."""
    name = pb.BaseCommand.Type.Name(command.type)
    show = _SHOWN.get(name)
    fields = show(command, behind) if show is not None else {}
    return {"connection": connection, "frame": name, **fields}


def _producer_success(command: pb.BaseCommand, _: bytes) -> Seen:
    success = command.producer_success
    return {
        "last_sequence_id": success.last_sequence_id,
        "producer_ready": success.producer_ready,
        "topic_epoch": success.topic_epoch if success.HasField("topic_epoch") else False,
        "producer_name": success.producer_name,
        **({"schema_version": success.schema_version.hex()} if success.schema_version else {}),
    }


def _receipt(command: pb.BaseCommand, _: bytes) -> Seen:
    receipt = command.send_receipt
    highest = receipt.highest_sequence_id if receipt.HasField("highest_sequence_id") else None
    return {
        "producer_id": receipt.producer_id,
        "sequence_id": receipt.sequence_id,
        # A real broker's first receipt has 0 instead of none: its fresh object was never cleared.
        "highest_sequence_id": NO_NUMBER if highest == 0 else highest,
        "entry_id": receipt.message_id.entryId,
    }


def _send_error(command: pb.BaseCommand, _: bytes) -> Seen:
    error = command.send_error
    return {
        "error": pb.ServerError.Name(error.error),
        "producer_id": error.producer_id,
        "sequence_id": error.sequence_id,
    }


def _error(command: pb.BaseCommand, _: bytes) -> Seen:
    error = command.error
    return {"error": pb.ServerError.Name(error.error), "request_id": error.request_id}


def _ack_response(command: pb.BaseCommand, _: bytes) -> Seen:
    response = command.ackResponse
    return {"error": pb.ServerError.Name(response.error)} if response.HasField("error") else {}


def _last_message_id(command: pb.BaseCommand, _: bytes) -> Seen:
    response = command.getLastMessageIdResponse
    entry = response.last_message_id.entryId
    return {
        "entry_id": NO_ENTRY_RECORDED if entry == _NO_ENTRY else entry,
        "has_mark_delete_position": response.HasField("consumer_mark_delete_position"),
        "batch_index": response.last_message_id.batch_index,
    }


def _message(command: pb.BaseCommand, behind: bytes) -> Seen:
    message = command.message
    metadata, payload = split_message(behind)
    return {
        "consumer_id": message.consumer_id,
        "payload_tail": payload[-_TAIL_BYTES:].decode("latin-1"),
        "redelivery_count": message.redelivery_count,
        "num_messages_in_batch": metadata.num_messages_in_batch,
        "partition": message.message_id.partition,
        "entry_id": message.message_id.entryId,
        "ack_set": list(message.ack_set),
        **({"consumer_epoch": message.consumer_epoch} if message.consumer_epoch else {}),
    }


def _consumer_stats(command: pb.BaseCommand, _: bytes) -> Seen:
    stats = command.consumerStatsResponse
    names = ("consumerName", "availablePermits", "unackedMessages", "type", "msgBacklog")
    found = {name: getattr(stats, name) for name in names}
    error = stats.error_code if stats.HasField("error_code") else None
    blocked = stats.blockedConsumerOnUnackedMsgs
    return {**found, "blockedConsumerOnUnackedMsgs": blocked, "error_code": error}


def _schema(command: pb.BaseCommand, _: bytes) -> Seen:
    response = command.getSchemaResponse
    error = pb.ServerError.Name(response.error_code) if response.HasField("error_code") else None
    found = {"schema_version": response.schema_version.hex(), "type": response.schema.type}
    return {"error": error} if error else {**found, "data": response.schema.schema_data.hex()}


def _created_schema(command: pb.BaseCommand, _: bytes) -> Seen:
    response = command.getOrCreateSchemaResponse
    error = pb.ServerError.Name(response.error_code) if response.HasField("error_code") else None
    return {"error": error, "schema_version": response.schema_version.hex()}


def _partitions(command: pb.BaseCommand, _: bytes) -> Seen:
    response = command.partitionMetadataResponse
    error = pb.ServerError.Name(response.error) if response.HasField("error") else None
    return {"error": error, "partitions": response.partitions}


def _active(command: pb.BaseCommand, _: bytes) -> Seen:
    change = command.active_consumer_change
    return {"consumer_id": change.consumer_id, "is_active": change.is_active}


_SHOWN: dict[str, Callable[[pb.BaseCommand, bytes], Seen]] = {
    "PRODUCER_SUCCESS": _producer_success,
    "SEND_RECEIPT": _receipt,
    "SEND_ERROR": _send_error,
    "ERROR": _error,
    "ACK_RESPONSE": _ack_response,
    "GET_LAST_MESSAGE_ID_RESPONSE": _last_message_id,
    "MESSAGE": _message,
    "CONSUMER_STATS_RESPONSE": _consumer_stats,
    "GET_SCHEMA_RESPONSE": _schema,
    "GET_OR_CREATE_SCHEMA_RESPONSE": _created_schema,
    "PARTITIONED_METADATA_RESPONSE": _partitions,
    "ACTIVE_CONSUMER_CHANGE": _active,
    "CLOSE_CONSUMER": lambda command, _: {"consumer_id": command.close_consumer.consumer_id},
    "CLOSE_PRODUCER": lambda command, _: {"producer_id": command.close_producer.producer_id},
    "REACHED_END_OF_TOPIC": lambda command, _: {
        "consumer_id": command.reachedEndOfTopic.consumer_id
    },
}
