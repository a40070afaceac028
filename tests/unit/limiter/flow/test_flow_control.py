"""Pauses of a single connection: for unread answers, and for haste afterwards."""

import pytest

from limiter.flow.causes import PauseCause
from limiter.flow.flow_control import CooldownRules, FlowControl, FlowRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.flow.read_gate import ReadGate
from tests.support.clocks.manual_clock import ManualClock

FULL, COOLDOWN = PauseCause.OUTBOUND_BUFFER_FULL, PauseCause.COOLDOWN
RULES = CooldownRules(permits=5, period_seconds=0.010, window_seconds=5.0)


class Paced:
    """A connection's flow control, gate and clock."""

    def __init__(self, cooldown: CooldownRules = RULES, *, pauses: bool = True) -> None:
        self.clock = ManualClock()
        self.gate = ReadGate(lambda: None, lambda: None)
        rules = FlowRules(pause_if_unwritable=pauses, cooldown=cooldown)
        self.flow = FlowControl(rules, self.gate, self.clock)

    def pauses_and_resumes(self) -> None:
        self.flow.writability_changed(writable=False)
        self.flow.writability_changed(writable=True)

    def handles(self, commands: int) -> int:
        """Handle commands until reading is paused, as a connection does; return their number."""
        for handled in range(commands):
            if not self.gate.open:
                return handled
            self.flow.command_received()
        return commands


@pytest.fixture
def paced() -> Paced:
    paced = Paced()
    paced.pauses_and_resumes()
    return paced


def test_the_default_flow_rules_match_upstream() -> None:
    assert FlowRules() == FlowRules(WriteBufferMarks(65_536, 32_768), False, CooldownRules(), 0)


def test_reading_pauses_while_the_outbound_buffer_is_unwritable() -> None:
    paced = Paced()
    paced.flow.writability_changed(writable=False)
    assert repr(paced.gate) == "<ReadGate closed: OUTBOUND_BUFFER_FULL>"
    paced.flow.writability_changed(writable=True)
    assert paced.gate.open


def test_reading_does_not_pause_when_pausing_is_off() -> None:
    paced = Paced(pauses=False)
    paced.flow.writability_changed(writable=False)
    assert paced.gate.open
    paced.flow.writability_changed(writable=True)
    assert paced.handles(1_000) == 1_000
    assert paced.gate.open


def test_before_the_first_resume_commands_are_not_counted() -> None:
    paced = Paced()
    paced.flow.writability_changed(writable=False)
    paced.gate.open_for(FULL)
    assert paced.handles(1_000) == 1_000


def test_the_command_without_a_permit_is_handled_and_later_commands_wait(paced: Paced) -> None:
    assert paced.handles(100) == 5 + 1
    assert repr(paced.gate) == "<ReadGate closed: COOLDOWN>"


def test_reading_resumes_after_a_period_with_the_permits_of_the_next_period(paced: Paced) -> None:
    paced.handles(100)
    paced.clock.advance(0.0099)
    assert not paced.gate.open
    paced.clock.advance(0.0002, late_seconds=0.00005)
    assert paced.gate.open
    assert paced.handles(100) == 6


def test_commands_handled_during_a_pause_do_not_change_its_length(paced: Paced) -> None:
    paced.handles(100)
    # When control frames overtake
    paced.clock.advance(0.005)
    for _ in range(20):
        paced.flow.command_received()
    paced.clock.advance(0.0051)
    assert paced.gate.open
    # nor the next pause shorter
    paced.handles(100)
    paced.clock.advance(0.0095)
    assert not paced.gate.open


@pytest.mark.parametrize(("seconds", "handled"), [(5.0, 6), (5.001, 100)])
def test_the_cooldown_ends_with_its_window(paced: Paced, seconds: float, handled: int) -> None:
    paced.clock.advance(seconds)
    assert paced.handles(100) == handled


def test_each_resume_restarts_the_window(paced: Paced) -> None:
    paced.clock.advance(4.9)
    paced.pauses_and_resumes()
    paced.clock.advance(4.9)
    assert paced.handles(100) == 6


def test_the_window_continues_while_reading_is_paused_again(paced: Paced) -> None:
    paced.flow.writability_changed(writable=False)
    paced.clock.advance(4.0)
    for _ in range(6):
        paced.flow.command_received()
    assert paced.gate.is_closed_for(COOLDOWN)


def test_the_end_of_the_cooldown_does_not_lift_the_pause_for_a_full_buffer(paced: Paced) -> None:
    paced.handles(100)
    paced.flow.writability_changed(writable=False)
    paced.clock.advance(1.0)
    assert repr(paced.gate) == "<ReadGate closed: OUTBOUND_BUFFER_FULL>"
    paced.flow.writability_changed(writable=True)
    assert paced.gate.open


@pytest.mark.parametrize("window", [0.0, -1.0])
def test_without_a_window_there_is_no_cooldown(window: float) -> None:
    paced = Paced(CooldownRules(window_seconds=window))
    paced.pauses_and_resumes()
    assert paced.handles(1_000) == 1_000


def test_a_rate_per_second_is_enforced() -> None:
    # Given the proposal's two keys: 1,000 a second
    paced = Paced(CooldownRules(1_000, 1.0, 5.0))
    paced.pauses_and_resumes()
    assert paced.handles(5_000) == 1_001
    paced.clock.advance(0.999)
    assert not paced.gate.open


def test_a_rate_of_zero_allows_a_single_command_per_period() -> None:
    paced = Paced(CooldownRules(0, 0.010, 5.0))
    paced.pauses_and_resumes()
    for _ in range(3):
        assert paced.handles(10) == 1
        paced.clock.advance(0.011)


# -- the end --------------------------------------------------------------------------------------


def test_after_a_lifted_cooldown_a_running_pause_ends_in_time_and_commands_are_not_limited(
    paced: Paced,
) -> None:
    paced.handles(100)
    paced.flow.lift_cooldown()
    assert not paced.gate.open
    paced.clock.advance(0.011)
    assert paced.handles(1_000) == 1_000


def test_a_stopped_flow_control_lifts_its_own_pause_causes_only(paced: Paced) -> None:
    paced.handles(100)
    paced.flow.writability_changed(writable=False)
    paced.gate.close_for(PauseCause.PEER_LEG_FULL)
    paced.flow.stop()
    assert repr(paced.gate) == "<ReadGate closed: PEER_LEG_FULL>"


def test_no_timer_of_a_flow_control_runs_after_its_end(paced: Paced) -> None:
    paced.handles(100)
    paced.flow.end()
    paced.clock.advance(1.0)
    # Then the gate is unchanged
    assert paced.gate.is_closed_for(COOLDOWN)


def test_a_stop_after_the_end_is_harmless(paced: Paced) -> None:
    paced.handles(100)
    paced.flow.end()
    paced.flow.stop()
    assert paced.gate.open
