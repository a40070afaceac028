"""Plays a script, and checks the world after all peers have left."""

from typing import Protocol, runtime_checkable

from tests.fuzz.driving.peer import Peer
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.inputs import script

SHORTEST_SECONDS = 0.01
"""Shortest time step; steps double from here, up to five minutes."""
READ_BYTES = 64


class World(Protocol):
    """Server in this process."""

    loop: SteppedLoop

    def peer(self) -> Peer: ...

    def check(self) -> None:
        """Find resources still held."""


@runtime_checkable
class HasBroker(Protocol):
    """Proxy whose broker may send any bytes."""

    def says_as_broker(self, data: bytes) -> None:
        """Deliver broker bytes to the proxy."""


def play(world: World, peers: list[Peer], data: bytes) -> None:
    """Play an input's script, then disconnect all peers.

    Raises:
        BrokenRuleError: Resources are still held, or an answer is malformed.
    """
    _, steps = script.read(data)
    player = _Player(world, peers)
    for step in steps:
        player.takes(step)
    player.says(b"", halved=False)
    for peer in player.everybody:
        peer.breaks()
    world.loop.settle()
    world.check()
    if not player.broker_spoke:
        for peer in player.everybody:
            peer.answers()


class _Player:
    def __init__(self, world: World, peers: list[Peer]) -> None:
        self._world = world
        self._peers = peers
        self._now = 0
        self._joined = b""
        self.broker_spoke = False
        self.everybody = list(peers)

    def takes(self, step: script.Step) -> None:
        if step.what not in (script.COMMAND, script.MESSAGE, script.BYTES):
            self.does(step.what, step.data[0] if step.data else 0)
        elif step.flags & script.WRONG and step.what != script.MESSAGE:
            self.broker_says(script.wire_bytes(step))
        elif step.flags & script.JOINED:
            self._joined += script.wire_bytes(step)
        else:
            self.says(script.wire_bytes(step), halved=bool(step.flags & script.HALVED))

    def says(self, data: bytes, *, halved: bool) -> None:
        data, self._joined = self._joined + data, b""
        peer = self._peers[self._now]
        half = len(data) // 2 if halved else 0
        for piece in filter(None, (data[:half], data[half:])):
            peer.say(piece)

    def broker_says(self, data: bytes) -> None:
        if isinstance(self._world, HasBroker):
            self.broker_spoke = True
            self._world.says_as_broker(data)

    def does(self, what: int, value: int) -> None:
        peer = self._peers[self._now]
        if what == script.TIME:
            self._world.loop.pass_time(SHORTEST_SECONDS * 2 ** (value % 16))
        elif what == script.READS:
            peer.reads(READ_BYTES << (value % 12))
        elif what == script.STOPS:
            peer.transport.reads_at_once = bool(value & 1)
        elif what == script.LEAVES:
            (peer.ends if value & 1 else peer.breaks)()
            self._peers[self._now] = self._world.peer()
            self.everybody.append(self._peers[self._now])
        else:
            if len(self._peers) == 1:
                self._peers.append(self._world.peer())
                self.everybody.append(self._peers[1])
            self._now = 1 - self._now
