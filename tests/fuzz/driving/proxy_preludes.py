"""Initial states of a proxy's connection for scripts."""

from typing import Any

import proto.PulsarApi_pb2 as pb
from tests.fuzz.driving.broker_preludes import (
    have_messages,
    have_producers_and_consumers,
    large_listing,
)
from tests.fuzz.driving.peer import Peer
from tests.fuzz.driving.proxy_world import BROKER_PORT, SILENT_PORT, ProxyWorld
from tests.support.peers.frames import frame
from tests.support.peers.raw_peer import connect_command

BEFORE, LOOKUPS, PIPE, PRODUCING, RECEIVING, PAUSED, DRAINING, CONNECTING = range(8)
_TARGETS = {
    BEFORE: None,
    CONNECTING: f"127.0.0.1:{SILENT_PORT}",
    **dict.fromkeys((PIPE, PRODUCING, RECEIVING), f"127.0.0.1:{BROKER_PORT}"),
}


def prelude(world: ProxyWorld, number: int) -> list[Peer]:
    """Return a new connection in a state."""
    peer = world.peer()
    if number == BEFORE:
        return [peer]
    peer.say(frame(_connect(_TARGETS.get(number))))
    if number == PRODUCING:
        have_producers_and_consumers(world, peer)
    elif number == RECEIVING:
        have_messages(world, peer)
    elif number in (PAUSED, DRAINING):
        peer.transport.reads_at_once = False
        peer.say(large_listing(1) + large_listing(2))
    if number == DRAINING:
        cnx: Any = peer.protocol
        world.loop.create_task(cnx.drain())
        world.loop.settle()
    return [peer]


def _connect(target: str | None) -> pb.BaseCommand:
    return connect_command(target, protocol_version=21)
