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


def test_what_was_not_written_is_not_held(connected: tuple[socket.socket, socket.socket]) -> None:
    assert unacknowledged_bytes(connected[0].fileno()) == 0


def test_what_the_peers_kernel_has_no_room_for_is_held(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, _ = connected
    written = fill(ours)
    # Then bytes taken by the peer's kernel are acknowledged, though the peer did not read
    assert 0 < unacknowledged_bytes(ours.fileno()) < written


def test_what_the_peer_has_read_is_held_no_more(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    read_all(peer, written)
    # Then at most the last acknowledgement is in flight
    assert unacknowledged_bytes(ours.fileno()) < written // 2


@pytest.mark.parametrize("descriptor", [-1, 1_000_000])
def test_of_a_socket_that_is_no_more_nothing_is_held(descriptor: int) -> None:
    assert unacknowledged_bytes(descriptor) == 0


def test_a_closed_socket_holds_nothing(connected: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = connected
    fill(ours)
    descriptor = ours.fileno()
    ours.close()
    assert unacknowledged_bytes(descriptor) == 0


def test_where_the_system_cannot_tell_everything_counts_as_taken(
    connected: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proto.transport.outbound_queue, "_REQUEST", None)
    fill(connected[0])
    assert unacknowledged_bytes(connected[0].fileno()) == 0


# -- an immediate end -----------------------------------------------------------------------------


def test_what_the_peer_did_not_take_is_forgotten_when_the_socket_is_closed(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    forget_unsent(ours.fileno())
    ours.close()
    # Then the peer is notified immediately, and receives no more bytes
    with pytest.raises(ConnectionResetError):
        read_all(peer, written)


def test_without_that_the_peer_gets_everything_that_was_written(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    written = fill(ours)
    ours.close()
    read_all(peer, written)
    assert peer.recv(1) == b""


def test_the_socket_itself_stays_open_until_it_is_closed(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = connected
    forget_unsent(ours.fileno())
    ours.send(b"still here")
    assert peer.recv(100) == b"still here"


@pytest.mark.parametrize("descriptor", [-1, 1_000_000])
def test_to_forget_what_a_socket_that_is_no_more_has_not_sent_is_harmless(descriptor: int) -> None:
    forget_unsent(descriptor)
