"""A disconnect is noticed although the socket is not read."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from proto.transport.process_flow import LOOK_EVERY_SECONDS, HangupWatch
from tests.support.clocks.counting_clock import CountingClock

LINGER_FOR_NOTHING = struct.pack("ii", 1, 0)


class Watched:
    """A watch over real loopback sockets, and the reported hangups."""

    def __init__(self, sockets: ExitStack) -> None:
        self.clock = CountingClock()
        self.watch = HangupWatch(self.clock)
        self.left: list[str] = []
        self._sockets = sockets

    def connected(self) -> tuple[socket.socket, socket.socket]:
        """Return our side and the peer's."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            peer = self._sockets.enter_context(socket.create_connection(server.getsockname()))
            ours = self._sockets.enter_context(server.accept()[0])
        return ours, peer

    def watches(self, name: str) -> tuple[socket.socket, socket.socket]:
        ours, peer = self.connected()
        self.watch.watch(ours.fileno(), lambda: self.left.append(name))
        return ours, peer

    def passes(self, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.fixture
def watched() -> Iterator[Watched]:
    with ExitStack() as sockets:
        yield Watched(sockets)


def closes(peer: socket.socket) -> None:
    peer.close()


def shuts_down(peer: socket.socket) -> None:
    peer.shutdown(socket.SHUT_WR)


def resets(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_FOR_NOTHING)
    peer.close()


def sends_and_closes(peer: socket.socket) -> None:
    peer.sendall(bytes(10_000))
    peer.close()


def sends_and_resets(peer: socket.socket) -> None:
    peer.sendall(bytes(10_000))
    resets(peer)


LEAVES = [closes, shuts_down, resets, sends_and_closes, sends_and_resets]


@pytest.mark.parametrize("leaves", LEAVES)
def test_a_leaving_peer_is_noticed_within_an_interval_regardless_of_unread_bytes(
    watched: Watched, leaves: Callable[[socket.socket], None]
) -> None:
    _, peer = watched.watches("peer")
    watched.passes(1.0)
    leaves(peer)
    watched.passes(LOOK_EVERY_SECONDS)
    assert watched.left == ["peer"]
    assert LOOK_EVERY_SECONDS < 0.5


@pytest.mark.parametrize("leaves", LEAVES)
def test_a_peer_gone_before_the_watch_began_is_noticed(watched, leaves) -> None:
    ours, peer = watched.connected()
    leaves(peer)
    watched.watch.watch(ours.fileno(), lambda: watched.left.append("peer"))
    watched.passes(LOOK_EVERY_SECONDS)
    assert watched.left == ["peer"]


@pytest.mark.parametrize("unread", [0, 1, 10_000])
def test_a_connected_peer_is_not_reported_regardless_of_unread_bytes(watched, unread) -> None:
    _, peer = watched.watches("peer")
    peer.sendall(bytes(unread))
    watched.passes(60.0)
    assert watched.left == []
    assert len(watched.watch) == 1


def test_a_peer_that_does_not_read_is_not_reported_as_gone(watched: Watched) -> None:
    ours, _ = watched.watches("peer")
    ours.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            ours.send(bytes(100_000))
    watched.passes(60.0)
    assert watched.left == []


def test_a_hangup_is_reported_once(watched: Watched) -> None:
    _, peer = watched.watches("peer")
    peer.close()
    watched.passes(60.0)
    assert watched.left == ["peer"]
    assert len(watched.watch) == 0


def test_all_hangups_of_an_interval_are_reported_together(watched: Watched) -> None:
    peers = [watched.watches(name)[1] for name in "abcd"]
    for peer in peers[:3]:
        peer.close()
    watched.passes(LOOK_EVERY_SECONDS)
    assert sorted(watched.left) == ["a", "b", "c"]
    assert len(watched.watch) == 1


def test_a_forgotten_socket_is_not_reported(watched: Watched) -> None:
    ours, peer = watched.watches("peer")
    watched.watch.forget(ours.fileno())
    peer.close()
    watched.passes(60.0)
    # Then, and the kernel is not queried again
    assert watched.left == []
    assert watched.watch._poll.poll(0) == []


def test_forgetting_an_unwatched_socket_is_a_no_op(watched: Watched) -> None:
    ours, _ = watched.watches("peer")
    watched.watch.forget(ours.fileno())
    watched.watch.forget(ours.fileno())
    assert len(watched.watch) == 0


def test_a_socket_watched_again_is_reported_to_the_new_callback(watched: Watched) -> None:
    ours, peer = watched.watches("before")
    watched.watch.forget(ours.fileno())
    watched.watch.watch(ours.fileno(), lambda: watched.left.append("after"))
    peer.close()
    watched.passes(LOOK_EVERY_SECONDS)
    assert watched.left == ["after"]


def test_a_socket_forgotten_by_another_hangup_callback_is_not_reported(watched: Watched) -> None:
    # A pipe, closed by one end
    (one, one_peer), (two, two_peer) = watched.connected(), watched.connected()
    for ours, other in ((one, two), (two, one)):
        watched.watch.watch(
            ours.fileno(), lambda other=other: (watched.left.append("end"), forget(other))
        )

    def forget(sock: socket.socket) -> None:
        watched.watch.forget(sock.fileno())

    one_peer.close()
    two_peer.close()
    watched.passes(60.0)
    assert watched.left == ["end"]
    assert len(watched.watch) == 0


def test_a_callback_may_watch_another_socket(watched: Watched) -> None:
    (first, first_peer), (second, second_peer) = watched.connected(), watched.connected()

    def watch_second() -> None:
        watched.left.append("first")
        watched.watch.watch(second.fileno(), lambda: watched.left.append("second"))

    watched.watch.watch(first.fileno(), watch_second)
    first_peer.close()
    watched.passes(LOOK_EVERY_SECONDS)
    armed = watched.clock.armed
    watched.passes(LOOK_EVERY_SECONDS)
    second_peer.close()
    watched.passes(LOOK_EVERY_SECONDS)
    # Then there was one timer at a time
    assert watched.left == ["first", "second"]
    assert watched.clock.armed == armed + 1


def test_no_timer_runs_while_no_socket_is_watched(watched: Watched) -> None:
    ours, _ = watched.watches("peer")
    watched.passes(1.0)
    watched.watch.forget(ours.fileno())
    watched.passes(LOOK_EVERY_SECONDS)
    armed = watched.clock.armed
    watched.passes(3_600.0)
    assert watched.clock.armed == armed


def test_many_sockets_are_polled_with_a_single_timer(watched: Watched) -> None:
    for number in range(20):
        watched.watches(str(number))
    watched.passes(10.1)
    assert watched.clock.armed == 1 + 50


def test_polling_restarts_for_a_socket_watched_after_an_empty_period(watched: Watched) -> None:
    ours, _ = watched.watches("before")
    watched.watch.forget(ours.fileno())
    watched.passes(10.0)
    _, peer = watched.watches("after")
    peer.close()
    watched.passes(LOOK_EVERY_SECONDS)
    assert watched.left == ["after"]
