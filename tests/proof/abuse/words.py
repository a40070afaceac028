"""The frames of hostile peers."""

import struct
from functools import lru_cache
from typing import Any

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command, encode_payload_command

Type = pb.BaseCommand


def command(kind: int, **body: Any) -> bytes:
    """Return a frame of a command; ``body`` names its field."""
    return encode_command(pb.BaseCommand(type=kind, **body))  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def connect(token: str = "", target: str | None = None) -> bytes:
    """Return CONNECT, with an optional token."""
    said = pb.CommandConnect(
        client_version="hostile",
        protocol_version=20,
        auth_method_name="token" if token else "none",
        auth_data=token.encode() if token else None,
        proxy_to_broker_url=target,
    )
    said.feature_flags.supports_topic_watchers = True
    return command(Type.CONNECT, connect=said)


def listing(namespace: str, request_id: int, **more: Any) -> bytes:
    asked = pb.CommandGetTopicsOfNamespace(request_id=request_id, namespace=namespace, **more)
    return command(Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked)


def watch(namespace: str, number: int, pattern: str) -> bytes:
    asked = pb.CommandWatchTopicList(
        request_id=number, watcher_id=number, namespace=namespace, topics_pattern=pattern
    )
    return command(Type.WATCH_TOPIC_LIST, watchTopicList=asked)


def lookup(topic: str, request_id: int) -> bytes:
    return command(
        Type.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic=topic, request_id=request_id)
    )


def producer(topic: str, number: int, **more: Any) -> bytes:
    asked = pb.CommandProducer(topic=topic, producer_id=number, request_id=number, **more)
    return command(Type.PRODUCER, producer=asked)


def subscribe(topic: str, number: int, subscription: str, **more: Any) -> bytes:
    asked = pb.CommandSubscribe(
        topic=topic,
        subscription=subscription,
        subType=pb.CommandSubscribe.Shared,
        consumer_id=number,
        request_id=number,
        **more,
    )
    return command(Type.SUBSCRIBE, subscribe=asked)


def flow(consumer: int, permits: int) -> bytes:
    return command(Type.FLOW, flow=pb.CommandFlow(consumer_id=consumer, messagePermits=permits))


def send(number: int, sequence: int, payload: bytes, messages: int = 1) -> bytes:
    """Return SEND of a message that claims a large batch."""
    metadata = pb.MessageMetadata(
        producer_name="hostile",
        sequence_id=sequence,
        publish_time=1,
        num_messages_in_batch=messages,
    )
    said = pb.BaseCommand(
        type=Type.SEND,
        send=pb.CommandSend(producer_id=number, sequence_id=sequence, num_messages=messages),
    )
    return encode_payload_command(said, metadata.SerializeToString(), payload)


def ping() -> bytes:
    return command(Type.PING, ping=pb.CommandPing())


def announced(total_bytes: int, command_bytes: int, start: bytes = b"\x08\x06") -> bytes:
    """Return the start of a frame that announces more bytes than follow."""
    return struct.pack(">II", total_bytes, command_bytes) + start
