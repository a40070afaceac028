"""TLS handshakes under way: their time, their end, and what they are counted as."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from server.tls.handshakes import TlsHandshakes
from tests.support.clocks.manual_clock import ManualClock

if TYPE_CHECKING:
    from proto.transport.connection import Connection


class Peer:
    """Stands in for a connection."""

    peer = "1.2.3.4:5"

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.sender = self

    def abort(self) -> None:
        self.ends.append("abort")

    def reset(self) -> None:
        self.ends.append("reset")


def begun() -> tuple[TlsHandshakes, ManualClock, Peer, Connection]:
    clock, peer = ManualClock(), Peer()
    handshakes, cnx = TlsHandshakes(clock, 10.0), cast("Connection", peer)
    handshakes.began(cnx)
    return handshakes, clock, peer, cnx


def test_a_handshake_that_stops_half_way_is_cut_off_in_time() -> None:
    # Given
    handshakes, clock, peer, cnx = begun()
    # When
    clock.advance(9.9)
    # Then
    assert (handshakes.under_way, peer.ends) == (1, [])
    # When
    clock.advance(0.1)
    handshakes.lost(cnx)
    # Then: it is counted once
    assert (handshakes.under_way, peer.ends) == (0, ["reset"])
    assert (handshakes.timed_out_total, handshakes.failed_total) == (1, 0)


def test_a_handshake_that_is_finished_has_no_time_any_more() -> None:
    # Given
    handshakes, clock, peer, cnx = begun()
    # When
    handshakes.finished(cnx)
    clock.advance(100)
    handshakes.lost(cnx)
    # Then
    assert (handshakes.under_way, peer.ends) == (0, [])
    assert (handshakes.finished_total, handshakes.failed_total) == (1, 0)


def test_a_peer_that_leaves_in_its_handshake_is_a_failure() -> None:
    # Given
    handshakes, clock, peer, cnx = begun()
    # When
    handshakes.lost(cnx)
    clock.advance(100)
    # Then
    assert (handshakes.under_way, handshakes.failed_total, peer.ends) == (0, 1, [])


def test_a_server_that_ends_cuts_off_who_is_not_in_yet() -> None:
    # Given
    handshakes, _, peer, _ = begun()
    # When
    handshakes.abort_all()
    # Then
    assert peer.ends == ["abort"]
