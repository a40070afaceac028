"""Paused connections, reasons and times: sums that return to zero."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.flow.causes import CloseReason, PauseCause, RateLimitOperation
from limiter.flow.outbound_buffer import OutboundTotals
from limiter.flow.read_gate import ReadGate
from limiter.flow.totals import FlowTotals
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many

FULL, COOLDOWN = PauseCause.OUTBOUND_BUFFER_FULL, PauseCause.COOLDOWN
PUBLISHES = PauseCause.PENDING_PUBLISHES
PAUSED, RESUMED = RateLimitOperation.PAUSED, RateLimitOperation.RESUMED
THROTTLED, UNTHROTTLED = RateLimitOperation.THROTTLED, RateLimitOperation.UNTHROTTLED


class Process:
    """Some connections' gates and the process's totals."""

    def __init__(self, connections: int = 2) -> None:
        self.clock = ManualClock()
        self.totals = FlowTotals(self.clock)
        self.gates = [self.new_gate() for _ in range(connections)]

    def new_gate(self) -> ReadGate:
        return ReadGate(lambda: None, lambda: None, self.totals)

    def seconds(self, cause: PauseCause) -> float:
        return dict(self.totals.paused_seconds())[cause]

    def operations(self) -> dict[RateLimitOperation, int]:
        return {one: count for one, count in self.totals.operations.items() if count}


def test_every_cause_and_reason_is_present_with_zero_from_the_start() -> None:
    totals = FlowTotals(ManualClock())
    assert totals.connections == totals.pauses == dict.fromkeys(PauseCause, 0)
    assert dict(totals.paused_seconds()) == dict.fromkeys(PauseCause, 0.0)
    assert totals.closed == dict.fromkeys(CloseReason, 0)
    assert totals.operations == dict.fromkeys(RateLimitOperation, 0)


def test_totals_refer_to_the_outbound_totals_of_the_process() -> None:
    outbound = OutboundTotals()
    assert FlowTotals(ManualClock(), outbound).outbound is outbound


def test_paused_connections_are_counted_by_cause() -> None:
    process = Process()
    one, two = process.gates
    one.close_for(FULL)
    two.close_for(FULL)
    two.close_for(COOLDOWN)
    assert (process.totals.connections[FULL], process.totals.connections[COOLDOWN]) == (2, 1)
    two.open_for(FULL)
    assert (process.totals.connections[FULL], process.totals.connections[COOLDOWN]) == (1, 1)


def test_a_pause_is_counted_each_time_its_cause_is_newly_set() -> None:
    process = Process(1)
    (gate,) = process.gates
    gate.close_for(FULL)
    gate.close_for(FULL)
    gate.open_for(FULL)
    gate.close_for(FULL)
    assert process.totals.pauses[FULL] == 2


def test_seconds_of_pauses_are_summed_over_connections() -> None:
    process = Process()
    one, two = process.gates
    one.close_for(FULL)
    process.clock.advance(2.0)
    two.close_for(FULL)
    process.clock.advance(3.0)
    one.open_for(FULL)
    two.open_for(FULL)
    process.clock.advance(100.0)
    assert process.seconds(FULL) == pytest.approx(5.0 + 3.0)


def test_seconds_include_pauses_still_in_progress() -> None:
    process = Process()
    one, two = process.gates
    one.close_for(FULL)
    process.clock.advance(2.0)
    two.close_for(FULL)
    process.clock.advance(1.0)
    assert process.seconds(FULL) == pytest.approx(3.0 + 1.0)
    one.open_for(FULL)
    process.clock.advance(1.0)
    assert process.seconds(FULL) == pytest.approx(3.0 + 2.0)
    assert process.seconds(COOLDOWN) == 0.0


def test_seconds_of_pauses_never_decrease() -> None:
    process = Process(50)
    seen = []
    for number, gate in enumerate(process.gates):
        gate.close_for(FULL)
        process.clock.advance(0.1 + number / 7)
        seen.append(process.seconds(FULL))
    for gate in process.gates:
        gate.open_for(FULL)
        seen.append(process.seconds(FULL))
    assert all(now >= before - 1e-6 for before, now in pairwise(seen))


def test_a_connection_is_paused_by_the_first_cause_and_resumed_by_the_last() -> None:
    process = Process(1)
    (gate,) = process.gates
    gate.close_for(FULL)
    gate.close_for(COOLDOWN)
    gate.open_for(FULL)
    assert process.operations() == {PAUSED: 1}
    gate.open_for(COOLDOWN)
    assert process.operations() == {PAUSED: 1, RESUMED: 1}


def test_pending_publishes_count_as_throttled_besides_any_pause() -> None:
    process = Process(1)
    (gate,) = process.gates
    gate.close_for(FULL)
    gate.close_for(PUBLISHES)
    assert process.operations() == {PAUSED: 1, THROTTLED: 1}
    gate.open_for(PUBLISHES)
    assert process.operations() == {PAUSED: 1, THROTTLED: 1, UNTHROTTLED: 1}


def test_a_connection_that_ends_while_paused_is_counted_no_more_and_does_not_resume() -> None:
    process = Process()
    one, two = process.gates
    one.close_for(FULL)
    one.close_for(PUBLISHES)
    two.close_for(FULL)
    process.clock.advance(2.0)
    one.end()
    process.clock.advance(2.0)
    assert (process.totals.connections[FULL], process.totals.connections[PUBLISHES]) == (1, 0)
    assert process.seconds(FULL) == pytest.approx(2.0 + 4.0)
    assert process.seconds(PUBLISHES) == pytest.approx(2.0)
    assert process.operations() == {PAUSED: 2, THROTTLED: 1}


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["close", "open", "end"]),
        st.sampled_from(PauseCause),
        st.floats(0, 10),
    ),
    max_size=60,
)


@settings(max_examples=many(200), deadline=None)
@given(STEPS)
def test_in_any_order_no_connection_is_counted_as_paused_after_all_have_ended(steps) -> None:
    process = Process(4)
    expected = dict.fromkeys(PauseCause, 0.0)
    for number, what, cause, seconds in steps:
        gate = process.gates[number]
        if what == "end":
            gate.end()
            process.gates[number] = process.new_gate()
        else:
            (gate.close_for if what == "close" else gate.open_for)(cause)
        process.clock.advance(seconds)
        for one in PauseCause:
            paused = sum(gate.is_closed_for(one) for gate in process.gates)
            assert process.totals.connections[one] == paused
            expected[one] += seconds * paused
            assert process.seconds(one) == pytest.approx(expected[one], abs=1e-6)
    for gate in process.gates:
        gate.end()
    process.clock.advance(1_000.0)
    assert set(process.totals.connections.values()) == {0}
    assert dict(process.totals.paused_seconds()) == pytest.approx(expected, abs=1e-6)
