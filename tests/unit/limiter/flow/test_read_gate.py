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


def test_the_first_cause_pauses_and_the_last_one_resumes() -> None:
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


def test_the_same_cause_twice_counts_once() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.close_for(FULL)
    watched.gate.open_for(FULL)
    assert watched.gate.open
    assert watched.calls == ["pause", "resume"]


def test_nobody_can_lift_anothers_cause() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.open_for(PEER)
    assert not watched.gate.open
    assert watched.calls == ["pause"]


def test_lifting_what_was_not_there_does_not_resume() -> None:
    watched = Watched()
    watched.gate.open_for(FULL)
    assert watched.calls == []


def test_a_gate_names_its_causes() -> None:
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


def test_a_cause_that_came_up_twice_is_counted_once() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.close_for(FULL)
    assert adding.counted() == {FULL: 1}
    assert adding.totals.pauses[FULL] == 1


def test_lifting_what_was_not_there_is_not_counted() -> None:
    adding = Adding()
    adding.gate.close_for(PEER)
    adding.gate.open_for(FULL)
    assert adding.counted() == {PEER: 1}
    assert adding.totals.operations[RateLimitOperation.RESUMED] == 0


def test_a_gate_that_ends_resumes_nothing_and_is_paused_for_nothing() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.close_for(PEER)
    adding.gate.end()
    assert adding.calls == ["pause"]
    assert adding.counted() == {}
    assert adding.gate.open


def test_who_lifts_its_cause_after_the_end_changes_nothing() -> None:
    adding = Adding()
    adding.gate.close_for(FULL)
    adding.gate.end()
    adding.gate.open_for(FULL)
    adding.gate.end()
    assert adding.calls == ["pause"]
    assert adding.counted() == {}


def test_a_gate_says_for_which_causes_it_is_closed() -> None:
    gate = Adding().gate
    gate.close_for(FULL)
    assert gate.is_closed_for(FULL)
    assert not gate.is_closed_for(PEER)


def test_when_reading_pauses_and_resumes_the_cause_is_known_already() -> None:
    seen: list[bool] = []
    gate = ReadGate(lambda: seen.append(gate.open), lambda: seen.append(gate.open))
    gate.close_for(FULL)
    gate.open_for(FULL)
    assert seen == [False, True]


def test_without_totals_a_gate_ends_as_well() -> None:
    watched = Watched()
    watched.gate.close_for(FULL)
    watched.gate.end()
    assert watched.gate.open
    assert watched.calls == ["pause"]
