"""Peer of a connection, which checks that it receives whole frames of valid commands."""

import asyncio
import struct

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.rules import TURNS, BrokenRuleError
from tests.support.peers.memory_transport import MemoryTransport


class Peer:
    """Peer without a socket.

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
        """Send bytes, and run the server until idle."""
        with TURNS.turn():
            self.transport.peer_sends(data)
        self._loop.settle()

    def reads(self, size: int) -> None:
        """Read waiting bytes."""
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
        """Return the commands received since the last call.

        Raises:
            BrokenRuleError: A frame or a command is malformed.
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
                break  # Cut off with the connection, or unread.
            try:
                found.append(pb.BaseCommand.FromString(data[at + 8 : at + 8 + size].tobytes()))
            except DecodeError:
                raise BrokenRuleError("a command that the server sent is malformed") from None
            at = end
        return found
