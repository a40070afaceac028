"""The requests of clients that discover topics, as bytes."""

from __future__ import annotations

from functools import lru_cache

import proto.PulsarApi_pb2 as pb
from loadgen.clients.wires import ListQuestion
from proto.frames import encode_command

Type = pb.BaseCommand
NOBODY_ASKED = 2**63
"""A request id whose answer nobody waits for; not that of refusals that name no request."""


def list_frame(request_id: int, question: ListQuestion) -> bytes:
    """Return GET_TOPICS_OF_NAMESPACE for persistent topics."""
    if question.properties:
        return _list_frame(request_id, question)
    plain = (request_id, question.namespace, question.pattern, question.topics_hash)
    return _plain_list_frame(*plain)


@lru_cache(maxsize=4096)
def _plain_list_frame(
    request_id: int, namespace: str, pattern: str | None, topics_hash: str | None
) -> bytes:
    return _list_frame(request_id, ListQuestion(namespace, pattern, topics_hash))


def _list_frame(request_id: int, question: ListQuestion) -> bytes:
    topics = pb.CommandGetTopicsOfNamespace(
        request_id=request_id,
        namespace=question.namespace,
        mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
        topics_pattern=question.pattern,
        topics_hash=question.topics_hash,
    )
    for key, value in (question.properties or {}).items():
        topics.properties.add(key=key, value=value)
    return encode_command(Type(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=topics))


def watch_frame(
    request_id: int, watcher_id: int, namespace: str, pattern: str, topics_hash: str | None
) -> bytes:
    """Return WATCH_TOPIC_LIST."""
    watch = pb.CommandWatchTopicList(
        request_id=request_id,
        watcher_id=watcher_id,
        namespace=namespace,
        topics_pattern=pattern,
        topics_hash=topics_hash,
    )
    return encode_command(Type(type=Type.WATCH_TOPIC_LIST, watchTopicList=watch))


@lru_cache(maxsize=4)
def close_watch_frame(watcher_id: int) -> bytes:
    """Return WATCH_TOPIC_LIST_CLOSE."""
    close = pb.CommandWatchTopicListClose(request_id=NOBODY_ASKED, watcher_id=watcher_id)
    return encode_command(Type(type=Type.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=close))


def subscribe_frame(request_id: int, consumer_id: int, topic: str, subscription: str) -> bytes:
    """Return SUBSCRIBE, shared; a topic that is gone is not created again."""
    subscribe = pb.CommandSubscribe(
        topic=topic,
        subscription=subscription,
        subType=pb.CommandSubscribe.Shared,
        consumer_id=consumer_id,
        request_id=request_id,
        force_topic_creation=False,
    )
    return encode_command(Type(type=Type.SUBSCRIBE, subscribe=subscribe))
