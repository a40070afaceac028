"""The frames of a load's clients, and the header by which a message says which one it is."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from client.exceptions import PulsarException
from loadgen.errors import UsageError
from proto.frames import (
    encode_command,
    encode_payload_command,
    verify_checksum,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.authentication.authentication import Authentication

Type = pb.BaseCommand
PROTOCOL_VERSION = 20
CLIENT_VERSION = "floodgate-loadgen"
PONG = encode_command(Type(type=Type.PONG, pong=pb.CommandPong()))
WATCHER_ID = PRODUCER_ID = 1
NOBODY_ASKED = 2**63
"""A request id whose answer nobody waits for; not that of refusals that name no request."""
SUBSCRIPTION_TYPES = {
    "exclusive": pb.CommandSubscribe.Exclusive,
    "shared": pb.CommandSubscribe.Shared,
    "failover": pb.CommandSubscribe.Failover,
    "key-shared": pb.CommandSubscribe.Key_Shared,
}
# Whose message, which of its messages, when it was due; zeros follow, up to the message's size.
_HEADER = struct.Struct(">IId")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct(">I")
_CHECKSUM_BYTES = 6


def connect_frame(
    tunnel_to: str | None = None, authentication: Authentication | None = None
) -> bytes:
    """Return CONNECT.

    Args:
        tunnel_to: ``host:port`` of a broker that a proxy is to pass everything on to.
        authentication: The credentials to show.

    Raises:
        UsageError: They cannot be read.
    """
    if authentication is None:
        return _connect_frame(tunnel_to, "none", None)
    return _connect_frame(tunnel_to, authentication.method_name, _shown(authentication))


@lru_cache(maxsize=16)
def _connect_frame(tunnel_to: str | None, method: str, data: bytes | None) -> bytes:
    connect = pb.CommandConnect(
        client_version=CLIENT_VERSION,
        protocol_version=PROTOCOL_VERSION,
        auth_method_name=method,
        auth_data=data,
        proxy_to_broker_url=tunnel_to,
    )
    connect.feature_flags.supports_topic_watchers = True
    if data is not None:
        connect.feature_flags.supports_auth_refresh = True
    return encode_command(Type(type=Type.CONNECT, connect=connect))


def auth_frame(authentication: Authentication) -> bytes:
    """Return AUTH_RESPONSE with the credentials of this moment.

    Raises:
        UsageError: They cannot be read.
    """
    shown = pb.AuthData(
        auth_method_name=authentication.method_name, auth_data=_shown(authentication)
    )
    response = pb.CommandAuthResponse(
        client_version=CLIENT_VERSION, protocol_version=PROTOCOL_VERSION, response=shown
    )
    return encode_command(Type(type=Type.AUTH_RESPONSE, authResponse=response))


def _shown(authentication: Authentication) -> bytes:
    try:
        return authentication.auth_data()
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
    """Return GET_TOPICS_OF_NAMESPACE for persistent topics."""
    topics = pb.CommandGetTopicsOfNamespace(
        request_id=request_id,
        namespace=namespace,
        mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
        topics_pattern=pattern,
        topics_hash=topics_hash,
    )
    for key, value in properties:
        topics.properties.add(key=key, value=value)
    return encode_command(Type(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=topics))


def lookup_frame(request_id: int, topic: str, *, authoritative: bool = False) -> bytes:
    """Return LOOKUP of a topic, or of a pattern as if it were one.

    Args:
        request_id: Its id.
        topic: Its name.
        authoritative: What a redirect said, for the broker that it led to.
    """
    lookup = pb.CommandLookupTopic(topic=topic, request_id=request_id, authoritative=authoritative)
    return encode_command(Type(type=Type.LOOKUP, lookupTopic=lookup))


def watch_frame(
    request_id: int, namespace: str, pattern: str, topics_hash: str | None = None
) -> bytes:
    """Return WATCH_TOPIC_LIST."""
    watch = pb.CommandWatchTopicList(
        request_id=request_id,
        watcher_id=WATCHER_ID,
        namespace=namespace,
        topics_pattern=pattern,
        topics_hash=topics_hash,
    )
    return encode_command(Type(type=Type.WATCH_TOPIC_LIST, watchTopicList=watch))


@lru_cache(maxsize=1)
def close_watch_frame() -> bytes:
    """Return WATCH_TOPIC_LIST_CLOSE."""
    close = pb.CommandWatchTopicListClose(request_id=NOBODY_ASKED, watcher_id=WATCHER_ID)
    return encode_command(Type(type=Type.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close))


class Subscribing(NamedTuple):
    """What a consumer subscribes to.

    Attributes:
        create: Whether a topic that is missing is made.
        durable: Whether the subscription outlives its consumers.
    """

    topic: str
    subscription: str
    type: str = "shared"
    consumer_id: int = 0
    create: bool = False
    durable: bool = True


def subscribe_frame(request_id: int, wanted: Subscribing) -> bytes:
    """Return SUBSCRIBE from the end of a topic."""
    subscribe = pb.CommandSubscribe(
        topic=wanted.topic,
        subscription=wanted.subscription,
        subType=SUBSCRIPTION_TYPES[wanted.type],
        consumer_id=wanted.consumer_id,
        request_id=request_id,
        durable=wanted.durable,
        force_topic_creation=wanted.create,
    )
    return encode_command(Type(type=Type.SUBSCRIBE, subscribe=subscribe))


def flow_frame(consumer_id: int, permits: int) -> bytes:
    """Return FLOW."""
    flow = pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
    return encode_command(Type(type=Type.FLOW, flow=flow))


def ack_frame(consumer_id: int, message_ids: Sequence[pb.MessageIdData]) -> bytes:
    """Return ACK of single messages."""
    ack = pb.CommandAck(
        consumer_id=consumer_id, ack_type=pb.CommandAck.Individual, message_id=message_ids
    )
    return encode_command(Type(type=Type.ACK, ack=ack))


def producer_frame(request_id: int, topic: str) -> bytes:
    """Return PRODUCER."""
    producer = pb.CommandProducer(topic=topic, producer_id=PRODUCER_ID, request_id=request_id)
    return encode_command(Type(type=Type.PRODUCER, producer=producer))


class Message(NamedTuple):
    """What a message of a load says of itself.

    Attributes:
        client: Number of the client that published it.
        number: Of its messages, from 1: its sequence id.
        due: When it was due, in seconds since the agreed start.
    """

    client: int
    number: int
    due: float


def message_frame(message: Message, size_bytes: int, keys: int) -> bytes:
    """Return SEND of a message, whose payload has so many bytes, and one of so many keys."""
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
    """Return what a message says of itself; None if it is broken.

    Args:
        tail: Checksum, metadata and payload.
        size_bytes: Size that a whole payload has.
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
