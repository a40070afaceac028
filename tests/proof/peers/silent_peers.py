"""Non-reading peers: plain sockets, so that hundreds are cheap."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import proto.PulsarApi_pb2 as pb
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.engine.frames import connect_frame, list_frame
from proto.parsing.parser import parse_command
from tests.proof.result import ProofError

HANDSHAKE_SECONDS = 30.0
_LENGTH = struct.Struct(">I")


class SilentPeer:
    """A connection that sends requests and reads nothing.

    Args:
        address: The server.
        namespace: Its requests' namespace.
        receive_buffer_bytes: Its socket's buffer; 0 is the kernel's default.
    """

    def __init__(
        self, address: tuple[str, int], namespace: str, receive_buffer_bytes: int = 0
    ) -> None:
        self.namespace = namespace
        self.socket = socket.socket()
        try:
            self.socket.settimeout(HANDSHAKE_SECONDS)
            if receive_buffer_bytes:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            self.socket.connect(address)
            self.socket.sendall(connect_frame())
            self._read_connected()
        except BaseException:
            self.socket.close()
            raise

    @property
    def port(self) -> int:
        """Its port, by which the server's end is found."""
        port: int = self.socket.getsockname()[1]
        return port

    def ask(self, listings: int) -> None:
        """Send so many requests in a single write; their ids count from 1."""
        frames = [list_frame(number + 1, self.namespace) for number in range(listings)]
        self.socket.sendall(b"".join(frames))

    def leave(self) -> None:
        """Close the socket; unread bytes are lost, which the server sees as a reset."""
        self.socket.close()

    def _read_connected(self) -> None:
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        answer = parse_command(self._read(size)[_LENGTH.size :])
        if answer.type != pb.BaseCommand.CONNECTED:
            raise ProofError(f"CONNECT was answered with a command of type {answer.type}")

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            received = self.socket.recv(size - len(data))
            if not received:
                raise ProofError("a server closed a connection before it was greeted")
            data += received
        return data


@contextmanager
def silent_peers(
    address: tuple[str, int], namespaces: Sequence[str], receive_buffer_bytes: int = 0
) -> Iterator[list[SilentPeer]]:
    """Connect a peer for each namespace for a block, handshake done and without requests."""
    raise_open_file_limit(2 * len(namespaces))
    with ExitStack() as stack:
        peers = []
        for namespace in namespaces:
            peers.append(SilentPeer(address, namespace, receive_buffer_bytes))
            stack.callback(peers[-1].leave)
        yield peers
