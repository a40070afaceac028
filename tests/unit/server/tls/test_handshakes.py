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


def test_an_unfinished_handshake_is_cut_off_after_its_timeout() -> None:
    handshakes, clock, peer = begun()
    clock.advance(9.9)
    assert (handshakes.under_way, peer.ends) == (1, [])
    clock.advance(0.1)
    handshakes.lost(peer)
    # Counted once
    assert (handshakes.under_way, peer.ends) == (0, ["reset"])
    assert (handshakes.timed_out_total, handshakes.failed_total) == (1, 0)


def test_a_finished_handshake_has_no_timeout() -> None:
    handshakes, clock, peer = begun()
    handshakes.finished(peer)
    clock.advance(100)
    handshakes.lost(peer)
    assert (handshakes.under_way, peer.ends) == (0, [])
    assert (handshakes.finished_total, handshakes.failed_total) == (1, 0)


def test_a_peer_lost_during_its_handshake_counts_as_failed() -> None:
    handshakes, clock, peer = begun()
    handshakes.lost(peer)
    clock.advance(100)
    assert (handshakes.under_way, handshakes.failed_total, peer.ends) == (0, 1, [])


def test_a_shutdown_aborts_unfinished_handshakes() -> None:
    handshakes, _, peer = begun()
    handshakes.abort_all()
    assert peer.ends == ["abort"]
