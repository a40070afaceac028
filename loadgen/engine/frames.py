"""Frames that the load's clients send, and the header in each message that they publish."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import proto.PulsarApi_pb2 as pb
from client.exceptions import PulsarException
from loadgen.errors import UsageError
from proto.frames import (
    encode_command,
    encode_payload_command,
    verify_checksum,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import google.protobuf.message

    from client.authentication.authentication import Authentication

Type = pb.BaseCommand
PROTOCOL_VERSION = 20
CLIENT_VERSION = "floodgate-loadgen"
WATCHER_ID = PRODUCER_ID = 1
NOBODY_ASKED = 2**63
"""The request id of a request without a waiter; refusals without a request have another."""
_FIELDS = {each.message_type.name: each for each in Type.DESCRIPTOR.fields if each.message_type}
Request: TypeAlias = (
    pb.CommandLookupTopic | pb.CommandWatchTopicList | pb.CommandSubscribe | pb.CommandProducer
)
# Client, message number and due time; zeros follow, up to the message's size.
_HEADER = struct.Struct(">IId")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct(">I")
_CHECKSUM_BYTES = 6


def frame_of(command: google.protobuf.message.Message) -> bytes:
    """Encode a command as a frame of Pulsar's binary protocol."""
    field = _FIELDS[command.DESCRIPTOR.name]
    fields: dict[str, Any] = {"type": field.number, field.name: command}
    return encode_command(Type(**fields))


PONG = frame_of(pb.CommandPong())
CLOSE_WATCH = frame_of(
    pb.CommandWatchTopicListClose(request_id=NOBODY_ASKED, watcher_id=WATCHER_ID)
)


def connect_frame(
    tunnel_to: str | None = None, authentication: Authentication | None = None
) -> bytes:
    """Return the frame of a CONNECT command.

    Args:
        tunnel_to: ``host:port`` of the broker to which a proxy opens a tunnel.
        authentication: The credentials of the client.

    Raises:
        UsageError: The credentials cannot be read.
    """
    connect = pb.CommandConnect(
        client_version=CLIENT_VERSION,
        protocol_version=PROTOCOL_VERSION,
        auth_method_name="none",
        proxy_to_broker_url=tunnel_to,
    )
    connect.feature_flags.supports_topic_watchers = True
    if authentication is not None:
        connect.auth_method_name = authentication.method_name
        connect.auth_data = _shown(authentication)
        connect.feature_flags.supports_auth_refresh = True
    return frame_of(connect)


def auth_frame(authentication: Authentication) -> bytes:
    """Return the frame of an AUTH_RESPONSE command with the current credentials.

    Raises:
        UsageError: The credentials cannot be read.
    """
    shown = pb.AuthData(
        auth_method_name=authentication.method_name, auth_data=_shown(authentication)
    )
    response = pb.CommandAuthResponse(
        client_version=CLIENT_VERSION, protocol_version=PROTOCOL_VERSION, response=shown
    )
    return frame_of(response)


def _shown(authentication: Authentication) -> bytes:
    try:
        return cast("bytes", authentication.auth_data())  # options' are not awaitable
    except PulsarException as error:
        raise UsageError(str(error)) from None


@lru_cache(maxsize=4096)
def list_frame(
    request_id: int,
    namespace: str,
    pattern: str | None = None,
    topics_hash: str | None = None,
    properties: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Return the frame of a GET_TOPICS_OF_NAMESPACE command for persistent topics."""
    topics = pb.CommandGetTopicsOfNamespace(
        request_id=request_id,
        namespace=namespace,
        mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
        topics_pattern=pattern,
        topics_hash=topics_hash,
    )
    for key, value in properties:
        topics.properties.add(key=key, value=value)
    return frame_of(topics)


def request_frame(command: Request) -> Callable[[int], bytes]:
    """Return a function that returns a command's frame, given the request id."""

    def frame(request_id: int) -> bytes:
        command.request_id = request_id
        return frame_of(command)

    return frame


class Message(NamedTuple):
    """The header in a message's payload: its client, its number, and when it was due.

    Attributes:
        client: Number of the client that published the message.
        number: Number of the message among the client's messages, from 1; also the sequence id.
        due: When the message was due, in seconds since the agreed start.
    """

    client: int
    number: int
    due: float


def message_frame(message: Message, size_bytes: int, keys: int) -> bytes:
    """Return the frame of a SEND command with a message of ``size_bytes``.

    The partition key of the message is one of ``keys`` different ones.
    """
    send = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=message.number, num_messages=1)
    metadata = pb.MessageMetadata(
        producer_name=f"loadgen-{message.client}", sequence_id=message.number, publish_time=1
    )
    if keys:
        metadata.partition_key = str(message.number % keys)
    payload = _HEADER.pack(*message) + bytes(max(0, size_bytes - HEADER_BYTES))
    command = Type(type=Type.SEND, send=send)
    return encode_payload_command(command, metadata.SerializeToString(), payload)


def read_message(tail: bytes, size_bytes: int) -> Message | None:
    """Parse the header in a received message's payload; None if the message is damaged.

    Args:
        tail: The received checksum, metadata and payload.
        size_bytes: The size of an undamaged payload.
    """
    if not verify_checksum(tail):
        return None
    begin = _CHECKSUM_BYTES if tail.startswith(b"\x0e\x01") else 0
    try:
        payload = begin + _LENGTH.size + _LENGTH.unpack_from(tail, begin)[0]
        found = Message(*_HEADER.unpack_from(tail, payload))
    except struct.error:
        return None
    return found if len(tail) - payload == max(size_bytes, HEADER_BYTES) else None
