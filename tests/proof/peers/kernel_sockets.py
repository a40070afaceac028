"""A server's TCP connections as the kernel knows them: which are open, and their buffers.

It is asked and not the peers, because a peer that does not read cannot see that it was closed: the
end of the stream stands behind what it has not read.

Source: proc(5), /proc/net/tcp.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"


@dataclass(frozen=True)
class KernelSocket:
    """One end of a connection.

    Attributes:
        port: Its own port.
        peer_port: The other end's.
        unacknowledged_bytes: Written here, not yet acknowledged by the other end's kernel.
        unread_bytes: Arrived here, not yet read by the process.
    """

    port: int
    peer_port: int
    unacknowledged_bytes: int
    unread_bytes: int


def open_peer_ports(server_port: int) -> set[int]:
    """Return the clients' ports of all connections that a server has not closed."""
    return {end.peer_port for end in _established() if end.port == server_port}


def swallowed_bytes(server_port: int, peer_ports: Collection[int]) -> int:
    """Return what the buffers of both ends hold of what a server wrote to clients."""
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
