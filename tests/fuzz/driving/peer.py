"""The other end of one connection: what it is sent must be whole frames of valid commands."""

import asyncio
import struct

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.rules import TURNS, BrokenRuleError
from tests.support.peers.memory_transport import MemoryTransport


class Peer:
    """A peer without a socket.

    Args:
        protocol: The server's side.
    """

    def __init__(self, loop: SteppedLoop, protocol: asyncio.Protocol) -> None:
        self._loop = loop
        self.protocol = protocol
        self.transport = MemoryTransport(protocol, reads_at_once=True)
        with TURNS.turn():
            self.transport.connect()
        loop.settle()

    def say(self, data: bytes) -> None:
        """Send bytes, and let the server do what comes of them."""
        with TURNS.turn():
            self.transport.peer_sends(data)
        self._loop.settle()

    def reads(self, size: int) -> None:
        """Read what waits."""
        with TURNS.turn():
            self.transport.peer_reads(size)
        self._loop.settle()

    def ends(self) -> None:
        """Send the end of the stream."""
        if not self.transport.is_closing():
            with TURNS.turn():
                self.transport.peer_closes()
        self._loop.settle()

    def breaks(self) -> None:
        """Vanish."""
        with TURNS.turn():
            self.transport.breaks()
        self._loop.settle()

    def answers(self) -> list[pb.BaseCommand]:
        """Return the commands that came since the last call.

        Raises:
            BrokenRuleError: A frame or a command is malformed: no client could read it.
        """
        data, at = memoryview(bytes(self.transport.received)), 0
        self.transport.received.clear()
        found = []
        while at + 8 <= len(data):
            total, size = struct.unpack_from(">II", data, at)
            if size + 4 > total:
                raise BrokenRuleError("a command that the server sent is longer than its frame")
            end = at + 4 + total
            if end > len(data):
                break  # Cut off with the connection, or not read.
            try:
                found.append(pb.BaseCommand.FromString(data[at + 8 : at + 8 + size].tobytes()))
            except DecodeError:
                raise BrokenRuleError("a command that the server sent is malformed") from None
            at = end
        return found
