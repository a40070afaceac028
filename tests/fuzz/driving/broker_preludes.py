"""Initial states of a broker's connection for scripts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from proto.frames import encode_payload_command
from tests.fuzz.driving.broker_world import LARGE_NAMESPACE, BrokerWorld
from tests.fuzz.driving.peer import Peer
from tests.fuzz.inputs.commands import TOPIC
from tests.fuzz.inputs.credentials import PROXY
from tests.support.peers.frames import frame

Type = pb.BaseCommand
Kind = pb.CommandSubscribe


class Prelude(NamedTuple):
    """Initial state: its name, its connection's settings, and its setup."""

    name: str
    state: ServerCnxState
    bring: Callable[[BrokerWorld, Peer], object]


def prelude(world: BrokerWorld, number: int) -> list[Peer]:
    """Return a new connection in a state."""
    chosen = PRELUDES[number % len(PRELUDES)]
    peer = world.peer()
    if chosen.state is ServerCnxState.CONNECTED:
        peer.say(frame(world.connect()))
    chosen.bring(world, peer)
    return [peer]


def _nothing(*_: object) -> None:
    pass


def have_producers_and_consumers(_: object, peer: Peer) -> None:
    """Create a producer and consumers of each type but Key_Shared, whose hash ring is slow to
    build.
    """
    _have(peer, (Kind.Shared, Kind.Exclusive, Kind.Failover))


def _have(peer: Peer, kinds: tuple[Kind.SubType.ValueType, ...]) -> None:
    producer = pb.CommandProducer(topic=TOPIC, producer_id=1, request_id=1, producer_name="p")
    asked = [frame(pb.BaseCommand(type=Type.PRODUCER, producer=producer))]
    for number, kind in enumerate(kinds, 1):
        subscribe = pb.CommandSubscribe(
            topic=TOPIC, subscription="sefk"[kind], subType=kind, consumer_id=number,
            request_id=10 + number,
        )  # fmt: skip
        asked.append(frame(pb.BaseCommand(type=Type.SUBSCRIBE, subscribe=subscribe)))
    peer.say(b"".join(asked))


def have_messages(_: object, peer: Peer) -> None:
    """Leave unacknowledged messages with consumers, including a Key_Shared consumer."""
    _have(peer, (Kind.Shared, Kind.Key_Shared))
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    said = b""
    for number in (1, 2):
        flow = pb.CommandFlow(consumer_id=number, messagePermits=3)
        said += frame(pb.BaseCommand(type=Type.FLOW, flow=flow))
    for sequence in range(5):
        send = pb.BaseCommand(
            type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=sequence)
        )
        said += encode_payload_command(send, metadata.SerializeToString(), b"payload")
    peer.say(said)


def _paused(_: BrokerWorld, peer: Peer) -> None:
    """Make the connection unwritable: large listings wait for a non-reading peer."""
    peer.transport.reads_at_once = False
    peer.say(large_listing(1) + large_listing(2))


def _draining(world: BrokerWorld, peer: Peer) -> None:
    """Drain during a listing."""
    peer.transport.reads_at_once = False
    peer.say(large_listing(1))
    cnx: Any = peer.protocol
    world.loop.create_task(cnx.drain())
    world.loop.settle()


def _watching(_: BrokerWorld, peer: Peer) -> None:
    watch = pb.CommandWatchTopicList(
        request_id=1, watcher_id=1, namespace="public/default",
        topics_pattern="persistent://public/default/.*",
    )  # fmt: skip
    peer.say(frame(pb.BaseCommand(type=Type.WATCH_TOPIC_LIST, watchTopicList=watch)))


def _through_a_proxy(world: BrokerWorld, peer: Peer) -> None:
    command = world.connect()
    command.connect.proxy_version = "proxy"
    if world.token:
        command.connect.auth_data = PROXY
    command.connect.original_principal = "admin"
    peer.say(frame(command))


def large_listing(request: int) -> bytes:
    """Return the frame of a request for a large listing."""
    asked = pb.CommandGetTopicsOfNamespace(request_id=request, namespace=LARGE_NAMESPACE)
    return frame(pb.BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked))


PRELUDES = (
    Prelude("before CONNECT", ServerCnxState.START, _nothing),
    Prelude("connected", ServerCnxState.CONNECTED, _nothing),
    Prelude(
        "with a producer and consumers", ServerCnxState.CONNECTED, have_producers_and_consumers
    ),
    Prelude("with messages to acknowledge", ServerCnxState.CONNECTED, have_messages),
    Prelude("paused", ServerCnxState.CONNECTED, _paused),
    Prelude("draining", ServerCnxState.CONNECTED, _draining),
    Prelude("with a watch", ServerCnxState.CONNECTED, _watching),
    Prelude("through a proxy", ServerCnxState.START, _through_a_proxy),
)
