"""Keep-alive ticks, as shipped and judged by progress."""

from dataclasses import dataclass

import pytest

from proto.transport.keep_alive import CLOSING, KeepAlive, PeerState, Verdict

PING, WAIT = Verdict.SEND_PING, Verdict.WAIT
HANDSHAKE, SILENT, STUCK = Verdict.CLOSE_HANDSHAKE, Verdict.CLOSE_SILENT, Verdict.CLOSE_STUCK
BOTH = pytest.mark.parametrize("by_progress", [False, True], ids=["pulsar", "floodgate"])


@dataclass
class Ticking:
    """A peer over some ticks; all counters continue from tick to tick."""

    by_progress: bool
    frames: int = 0
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self.keep_alive = KeepAlive(by_progress=self.by_progress)

    def tick(self, what: str = "") -> Verdict:
        """Advance an interval under the conditions named in ``what``."""
        words = what.split()
        self.frames += "heard" in words
        self.acknowledged += "took" in words
        return self.keep_alive.tick(
            PeerState(
                ready="shaking" not in words,
                paused="paused" in words,
                frames_seen=self.frames,
                acknowledged_bytes=self.acknowledged,
                outstanding="owes" in words,
            )
        )

    def ticks(self, *whats: str) -> list[Verdict]:
        return [self.tick(what) for what in whats]


@pytest.mark.parametrize(
    ("whats", "pulsar", "floodgate"),
    [
        # a responsive peer is probed each time
        (["", "heard", "heard"], [PING, PING, PING], [PING, PING, PING]),
        # any frame is an answer
        (["heard", "heard"], [PING, PING], [PING, PING]),
        # a silent peer is closed at the next tick
        (["", ""], [PING, SILENT], [PING, SILENT]),
        (["heard", "heard", ""], [PING, PING, SILENT], [PING, PING, SILENT]),
        # an unfinished handshake is closed at the first tick, in any state
        (["shaking"], [HANDSHAKE], [HANDSHAKE]),
        (["shaking heard"], [HANDSHAKE], [HANDSHAKE]),
        (["shaking paused"], [HANDSHAKE], [HANDSHAKE]),
        (["shaking took owes"], [HANDSHAKE], [HANDSHAKE]),
        # an unread peer cannot be heard: as shipped, probes repeat
        (["", "paused", "paused", "paused"], [PING] * 4, [PING, WAIT, WAIT, WAIT]),
        (["paused", "paused"], [PING, PING], [WAIT, WAIT]),
        # judged by progress, a peer that took no bytes between two ticks is closed
        (["", "paused owes", "paused owes"], [PING] * 3, [PING, WAIT, STUCK]),
        (["paused owes", "paused owes"], [PING, PING], [WAIT, STUCK]),
        # and lives after taking any bytes
        (["paused owes"] + ["paused owes took"] * 5, [PING] * 6, [WAIT] * 6),
        (["paused owes", "paused owes took", "paused owes"], [PING] * 3, [WAIT, WAIT, STUCK]),
        # or was heard: control frames overtake
        (["paused owes", "paused owes heard"], [PING] * 2, [WAIT, WAIT]),
        (["paused owes", "paused owes heard", "paused owes"], [PING] * 3, [WAIT, WAIT, STUCK]),
        # or without pending bytes in between
        (["paused owes", "paused", "paused owes"], [PING] * 3, [WAIT, WAIT, WAIT]),
        # a peer that is read and takes sent bytes need not answer in time
        (["", "took owes", "took owes"], [PING, SILENT], [PING, WAIT, WAIT]),
        (["", "took", ""], [PING, SILENT], [PING, WAIT, SILENT]),
        # a peer that is read and takes no bytes must
        (["", "owes"], [PING, SILENT], [PING, SILENT]),
        (["owes", "owes heard", "owes heard"], [PING] * 3, [PING] * 3),
    ],
)
def test_each_tick_has_the_expected_verdict_in_profile_pulsar_and_by_progress(
    whats: list[str], pulsar: list[Verdict], floodgate: list[Verdict]
) -> None:
    assert Ticking(by_progress=False).ticks(*whats[: len(pulsar)]) == pulsar
    assert Ticking(by_progress=True).ticks(*whats) == floodgate


def test_in_profile_pulsar_a_peer_read_again_after_a_pause_is_closed_if_silent() -> None:
    # Probes before and during the pause
    peer = Ticking(by_progress=False)
    peer.ticks("", "paused", "paused")
    assert peer.tick() is SILENT


def test_by_progress_a_ping_before_a_pause_is_sent_again() -> None:
    # The pause lasted over a tick; the answer may wait in the socket
    peer = Ticking(by_progress=True)
    peer.ticks("", "paused")
    assert peer.tick() is PING
    assert peer.tick() is SILENT


@BOTH
def test_a_frame_received_while_paused_answers_an_earlier_ping(by_progress: bool) -> None:
    peer = Ticking(by_progress)
    peer.ticks("", "paused heard")
    assert peer.tick("heard") is PING


@BOTH
def test_a_peer_with_an_unfinished_handshake_is_closed_without_a_ping(by_progress: bool) -> None:
    assert Ticking(by_progress).ticks("shaking", "shaking") == [HANDSHAKE, HANDSHAKE]


def test_the_closing_verdicts_are_exactly_the_verdicts_named_close() -> None:
    assert {one for one in Verdict if one.name.startswith("CLOSE")} == CLOSING
