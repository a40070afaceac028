"""Written bytes still in the kernel, because the peer has not taken them."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

import proto.transport.outbound_queue
from proto.transport.outbound_queue import forget_unsent, unacknowledged_bytes

SMALL_BUFFER_BYTES = 8_192


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Our side and the peer's, with small buffers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        ours = socket.create_connection(server.getsockname())
        ours.setblocking(False)
        with closing(ours), closing(server.accept()[0]) as peer:
            yield ours, peer


def fill(ours: socket.socket) -> int:
    """Write until the kernel takes no more."""
    written = 0
    try:
        while True:
            written += ours.send(bytes(SMALL_BUFFER_BYTES))
    except BlockingIOError:
        return written


def read_all(peer: socket.socket, size: int) -> None:
    while size:
        size -= len(peer.recv(min(size, 65_536)))


def test_a_fresh_socket_has_no_unacknowledged_bytes(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    assert unacknowledged_bytes(connected[0].fileno()) == 0


def test_bytes_without_room_in_the_peers_kernel_are_unacknowledged(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, _ = connected
    written = fill(ours)
    # Then bytes taken by the peer's kernel are acknowledged, though the peer did not read
    assert 0 < unacknowledged_bytes(ours.fileno()) < written


def test_bytes_read_by_the_peer_are_no_longer_unacknowledged(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    read_all(peer, written)
    # Then at most the last acknowledgement is in flight
    assert unacknowledged_bytes(ours.fileno()) < written // 2


@pytest.mark.parametrize("descriptor", [-1, 1_000_000])
def test_an_invalid_descriptor_has_no_unacknowledged_bytes(descriptor: int) -> None:
    assert unacknowledged_bytes(descriptor) == 0


def test_a_closed_socket_has_no_unacknowledged_bytes(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, _ = connected
    fill(ours)
    descriptor = ours.fileno()
    ours.close()
    assert unacknowledged_bytes(descriptor) == 0


def test_without_system_support_every_byte_counts_as_acknowledged(
    connected: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proto.transport.outbound_queue, "_REQUEST", None)
    fill(connected[0])
    assert unacknowledged_bytes(connected[0].fileno()) == 0


# -- an immediate end -----------------------------------------------------------------------------


def test_unsent_bytes_are_discarded_on_close_after_forget_unsent(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    forget_unsent(ours.fileno())
    ours.close()
    # Then the peer is notified immediately, and receives no more bytes
    with pytest.raises(ConnectionResetError):
        read_all(peer, written)


def test_without_forget_unsent_the_peer_receives_every_written_byte(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    ours.close()
    read_all(peer, written)
    assert peer.recv(1) == b""


def test_after_forget_unsent_the_socket_stays_open_until_closed(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    forget_unsent(ours.fileno())
    ours.send(b"still here")
    assert peer.recv(100) == b"still here"


@pytest.mark.parametrize("descriptor", [-1, 1_000_000])
def test_forget_unsent_of_an_invalid_descriptor_is_a_no_op(descriptor: int) -> None:
    forget_unsent(descriptor)
