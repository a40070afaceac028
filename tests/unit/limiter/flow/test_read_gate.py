"""A gate is open when no cause closes the gate."""

from limiter.flow.causes import PauseCause, RateLimitOperation
from limiter.flow.read_gate import ReadGate
from limiter.flow.totals import FlowTotals
from tests.support.clocks.manual_clock import ManualClock

FULL, PEER = PauseCause.OUTBOUND_BUFFER_FULL, PauseCause.PEER_LEG_FULL


class Watched:
    """A gate and the recorded pauses and resumptions."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = ReadGate(
            lambda: self.calls.append("pause"), lambda: self.calls.append("resume")
        )


def test_the_first_cause_pauses_reading_and_the_last_resumes_reading() -> None:
    watched = Watched()
    gate = watched.gate
    gate.close_for(FULL)
    gate.close_for(PEER)
    assert watched.calls == ["pause"]
    gate.open_for(FULL)
    assert not gate.open
    assert watched.calls == ["pause"]
    gate.open_for(PEER)
    assert gate.open
    assert watched.calls == ["pause", "resume"]


def test_closing_twice_for_the_same_cause_counts_once() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.close_for(FULL)
    watched.gate.open_for(FULL)
    assert watched.gate.open
    assert watched.calls == ["pause", "resume"]


def test_opening_for_a_different_cause_does_not_lift_a_cause() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.open_for(PEER)
    assert not watched.gate.open
    assert watched.calls == ["pause"]


def test_opening_for_a_cause_that_was_not_set_does_not_resume() -> None:
    watched = Watched()
    watched.gate.open_for(FULL)
    assert watched.calls == []


def test_a_gate_shows_its_causes() -> None:
    gate = Watched().gate
    open_text = repr(gate)
    gate.close_for(PEER)
    gate.close_for(FULL)
    assert open_text == "<ReadGate open>"
    assert repr(gate) == "<ReadGate closed: OUTBOUND_BUFFER_FULL, PEER_LEG_FULL>"


# -- totals and the end ---------------------------------------------------------------------------


class Adding:
    """A gate counted by a process, and the gate's requests."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.totals = FlowTotals(self.clock)
        self.calls: list[str] = []
        self.gate = ReadGate(
            lambda: self.calls.append("pause"), lambda: self.calls.append("resume"), self.totals
        )

    def counted(self) -> dict[PauseCause, int]:
        return {cause: count for cause, count in self.totals.connections.items() if count}


def test_a_cause_set_twice_is_counted_once() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.close_for(FULL)
    assert adding.counted() == {FULL: 1}
    assert adding.totals.pauses[FULL] == 1


def test_opening_for_a_cause_that_was_not_set_is_not_counted() -> None:
    adding = Adding()
    adding.gate.close_for(PEER)
    adding.gate.open_for(FULL)
    assert adding.counted() == {PEER: 1}
    assert adding.totals.operations[RateLimitOperation.RESUMED] == 0


def test_an_ended_gate_does_not_resume_and_is_counted_as_paused_for_no_cause() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.close_for(PEER)
    adding.gate.end()
    assert adding.calls == ["pause"]
    assert adding.counted() == {}
    assert adding.gate.open


def test_opening_an_ended_gate_is_a_no_op() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.end()
    adding.gate.open_for(FULL)
    adding.gate.end()
    assert adding.calls == ["pause"]
    assert adding.counted() == {}


def test_a_gate_reports_its_current_causes() -> None:
    gate = Adding().gate
    gate.close_for(FULL)
    assert gate.is_closed_for(FULL)
    assert not gate.is_closed_for(PEER)


def test_callbacks_of_pause_and_resume_see_the_new_state_of_the_gate() -> None:
    seen: list[bool] = []
    gate = ReadGate(lambda: seen.append(gate.open), lambda: seen.append(gate.open))
    gate.close_for(FULL)
    gate.open_for(FULL)
    assert seen == [False, True]


def test_a_gate_without_totals_can_end() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.end()
    assert watched.gate.open
    assert watched.calls == ["pause"]
