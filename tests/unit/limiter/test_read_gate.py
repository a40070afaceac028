"""A gate is open when nobody wants it closed."""

from __future__ import annotations

from limiter.read_gate import PauseCause, ReadGate

FULL, PEER = PauseCause.OUTBOUND_BUFFER_FULL, PauseCause.PEER_LEG_FULL


class Watched:
    """A gate and what it asked for."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = ReadGate(
            lambda: self.calls.append("pause"), lambda: self.calls.append("resume")
        )


def test_the_first_cause_pauses_and_the_last_one_resumes() -> None:
    # Given
    watched = Watched()
    gate = watched.gate
    # When, Then
    gate.close_for(FULL)
    gate.close_for(PEER)
    assert watched.calls == ["pause"]
    gate.open_for(FULL)
    assert not gate.open
    assert watched.calls == ["pause"]
    gate.open_for(PEER)
    assert gate.open
    assert watched.calls == ["pause", "resume"]


def test_the_same_cause_twice_counts_once() -> None:
    # Given
    watched = Watched()
    # When
    watched.gate.close_for(FULL)
    watched.gate.close_for(FULL)
    watched.gate.open_for(FULL)
    # Then
    assert watched.gate.open
    assert watched.calls == ["pause", "resume"]


def test_nobody_can_lift_anothers_cause() -> None:
    # Given
    watched = Watched()
    watched.gate.close_for(FULL)
    # When
    watched.gate.open_for(PEER)
    # Then
    assert not watched.gate.open
    assert watched.calls == ["pause"]


def test_lifting_what_was_not_there_does_not_resume() -> None:
    # Given
    watched = Watched()
    # When
    watched.gate.open_for(FULL)
    # Then
    assert watched.calls == []


def test_a_gate_names_its_causes() -> None:
    # Given
    gate = Watched().gate
    open_text = repr(gate)
    # When
    gate.close_for(PEER)
    gate.close_for(FULL)
    # Then
    assert open_text == "<ReadGate open>"
    assert repr(gate) == "<ReadGate closed: OUTBOUND_BUFFER_FULL, PEER_LEG_FULL>"
