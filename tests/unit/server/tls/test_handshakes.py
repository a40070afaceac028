"""TLS handshakes in progress: time limits, ends, and counters."""

from server.tls.handshakes import TlsHandshakes
from tests.support.clocks.manual_clock import ManualClock


class Peer:
    """Stands in for a connection."""

    peer = "1.2.3.4:5"

    def __init__(self) -> None:
        self.ends: list[str] = []

    def abort(self) -> None:
        self.ends.append("abort")

    def reset(self) -> None:
        self.ends.append("reset")


def begun() -> tuple[TlsHandshakes, ManualClock, Peer]:
    clock, peer = ManualClock(), Peer()
    handshakes = TlsHandshakes(clock, 10.0)
    handshakes.began(peer)
    return handshakes, clock, peer


def test_a_handshake_that_stops_half_way_is_cut_off_in_time() -> None:
    handshakes, clock, peer = begun()
    clock.advance(9.9)
    assert (handshakes.under_way, peer.ends) == (1, [])
    clock.advance(0.1)
    handshakes.lost(peer)
    # Counted once
    assert (handshakes.under_way, peer.ends) == (0, ["reset"])
    assert (handshakes.timed_out_total, handshakes.failed_total) == (1, 0)


def test_a_handshake_that_is_finished_has_no_time_any_more() -> None:
    handshakes, clock, peer = begun()
    handshakes.finished(peer)
    clock.advance(100)
    handshakes.lost(peer)
    assert (handshakes.under_way, peer.ends) == (0, [])
    assert (handshakes.finished_total, handshakes.failed_total) == (1, 0)


def test_a_peer_that_leaves_in_its_handshake_is_a_failure() -> None:
    handshakes, clock, peer = begun()
    handshakes.lost(peer)
    clock.advance(100)
    assert (handshakes.under_way, handshakes.failed_total, peer.ends) == (0, 1, [])


def test_a_server_that_ends_cuts_off_who_is_not_in_yet() -> None:
    handshakes, _, peer = begun()
    handshakes.abort_all()
    assert peer.ends == ["abort"]
