"""Watches over real connections: requests, the client's state, and the remains."""

from collections.abc import Iterable

import proto.PulsarApi_pb2 as pb
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import RawPeer
from tests.support.processes.cluster import Cluster, until

GOLD = NamespaceName.parse("public/gold")
ALPHA = [f"persistent://public/gold/alpha-{n}" for n in range(3)]
BETA = [f"persistent://public/gold/beta-{n}" for n in range(2)]
TOPICS = {"public/gold": ALPHA + BETA}
PROFILES = ["pulsar", "floodgate"]


def watch(
    pattern: str = "public/gold/alpha.*",
    request_id: int = 1,
    watcher_id: int = 1,
    known_hash: str | None = None,
) -> pb.BaseCommand:
    request = pb.CommandWatchTopicList(
        request_id=request_id,
        watcher_id=watcher_id,
        namespace="public/gold",
        topics_pattern=pattern,
        topics_hash=known_hash,
    )
    return pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=request)


def close(watcher_id: int = 1, request_id: int = 9) -> pb.BaseCommand:
    request = pb.CommandWatchTopicListClose(request_id=request_id, watcher_id=watcher_id)
    return pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE, watchTopicListClose=request)


async def change(parts: Cluster, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
    await parts.broker.store.apply(
        GOLD, TopicChanges([n.encode() for n in added], [n.encode() for n in removed])
    )


async def watching(parts: Cluster, *requests: pb.BaseCommand) -> RawPeer:
    """Return a peer with answered watches."""
    peer = await parts.peer("broker")
    for request in requests or (watch(),):
        await peer.send(request)
        answer = await peer.command()
        assert answer.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS, answer
    return peer


class Client:
    """A watch's client: applies updates and checks every hash."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)

    def apply(self, answer: pb.BaseCommand) -> None:
        assert answer.type == pb.BaseCommand.WATCH_TOPIC_UPDATE, answer
        update = answer.watchTopicUpdate
        assert not self.names & set(update.new_topics)
        assert self.names >= set(update.deleted_topics)
        self.names = (self.names | set(update.new_topics)) - set(update.deleted_topics)
        assert update.topics_hash == topics_hash(self.names)


async def making(parts: Cluster, peer: RawPeer, *requests: pb.BaseCommand) -> None:
    """Request watches and return when they wait for the held place."""
    pending = parts.broker.lookups.pending_requests
    await peer.send(*(requests or (watch(),)))
    count = len(requests) or 1
    await until(lambda: parts.broker.lookups.pending_requests == pending + count)
    await settle()


def nothing_is_left(parts: Cluster) -> bool:
    """Return whether no watch, set, followed namespace or byte of them is left."""
    totals, registry = parts.broker.watches.totals, parts.broker.watches.registry
    held = (totals.watchers, totals.lagging, registry.sets, registry.held_bytes)
    watches = [one for cnx in registry._watches.values() for one in cnx.by_id]
    return not any((*held, watches, registry._namespaces))
