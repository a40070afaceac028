"""A server's TCP connections in the kernel: the open connections and their buffers.

The kernel is the source, because a non-reading peer cannot see a close: the end of the stream is
behind its unread bytes.

Source: proc(5), /proc/net/tcp.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"


@dataclass(frozen=True)
class KernelSocket:
    """An end of a connection.

    Attributes:
        port: Its port.
        peer_port: The other end's.
        unacknowledged_bytes: Written here, not yet acknowledged by the other end's kernel.
        unread_bytes: Arrived here, not yet read by the process.
    """

    port: int
    peer_port: int
    unacknowledged_bytes: int
    unread_bytes: int


def open_peer_ports(server_port: int) -> set[int]:
    """Return the clients' ports of all connections not closed by a server."""
    return {end.peer_port for end in _established() if end.port == server_port}


def swallowed_bytes(server_port: int, peer_ports: Collection[int]) -> int:
    """Return the bytes from server to clients in the buffers of both ends."""
    total = 0
    for end in _established():
        if end.port == server_port and end.peer_port in peer_ports:
            total += end.unacknowledged_bytes
        elif end.peer_port == server_port and end.port in peer_ports:
            total += end.unread_bytes
    return total


def _established() -> Iterator[KernelSocket]:
    for line in _TABLE.read_text().splitlines()[1:]:
        _, local, remote, state, queues, *_ = line.split()
        if state == _ESTABLISHED:
            sending, receiving = (int(part, 16) for part in queues.split(":"))
            yield KernelSocket(_port(local), _port(remote), sending, receiving)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
