"""Faults delay frames of a connection that is read."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.frames import Frame
from server.faults.fault import Fault
from server.faults.holds import MAX_HELD_BYTES, MAX_HELD_FRAMES, Holds, Incoming
from server.faults.registry import MAX_FAULTS, FaultRegistry, SetFault, TooManyFaultsError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.unit.server.connection.test_served_connection import PING, Served


def fault() -> Fault:
    return Fault.of({"do": {"action": "drop"}})


def frame(size: int = 10) -> Frame:
    return Frame(size, (memoryview(bytes(size)),))


class Way:
    """Records reports."""

    can_stop = True

    def __init__(self) -> None:
        self.stopped = False
        self.went_on: list[Frame] = []

    def stop(self) -> None:
        self.stopped = True

    def go_on(self) -> None:
        self.stopped = False

    def again(self, frame: Frame) -> None:
        self.went_on.append(frame)


class Held:
    def __init__(self) -> None:
        self.way, self.clock, self.found = Way(), ManualClock(), SetFault("one", fault())
        self.holds = Holds(self.way, self.clock)

    def delay(self, seconds: float, size: int = 10, *, in_order: bool = False) -> Frame:
        kept = frame(size)
        self.holds.delay(self.found, kept, seconds, in_order=in_order)
        return kept


def test_reading_resumes_when_the_last_stopping_fault_is_over() -> None:
    held, other = Held(), SetFault("other", fault())
    held.holds.stop(held.found, 1.0)
    held.holds.stop(other, None)
    held.clock.advance(5.0)
    assert held.way.stopped
    other.clear()
    assert not held.way.stopped
    assert not held.holds


def test_frames_held_by_a_cleared_fault_continue_immediately_and_once() -> None:
    held = Held()
    kept = [held.delay(1.0), held.delay(2.0, in_order=True)]
    held.found.clear()
    held.clock.advance(9.0)
    assert held.way.went_on == kept
    assert not held.way.stopped
    assert [held.holds.was_delayed(one) for one in kept * 2] == [True, True, False, False]


@pytest.mark.parametrize(("count", "size"), [(MAX_HELD_FRAMES, 10), (2, MAX_HELD_BYTES // 2)])
def test_at_the_bound_of_held_frames_reading_stops(count: int, size: int) -> None:
    held = Held()
    for _ in range(count):
        held.delay(1.0, size)
    assert not held.way.stopped
    held.delay(1.0, size)
    assert held.way.stopped
    held.clock.advance(1.0)
    assert not held.way.stopped


def test_a_lost_connection_keeps_no_held_frames() -> None:
    held = Held()
    held.delay(1.0)
    held.holds.stop(held.found, None)
    held.holds.lost()
    held.clock.advance(2.0)
    held.found.clear()
    assert held.way.went_on == []
    assert (held.holds.frames, held.holds.size_bytes, bool(held.holds)) == (0, 0, False)


def test_the_number_of_faults_is_bounded() -> None:
    registry = FaultRegistry()
    for _ in range(MAX_FAULTS):
        registry.set(fault())
    with pytest.raises(TooManyFaultsError, match="clear some"):
        registry.set(fault())


async def test_a_stopped_connection_is_not_read_and_no_frame_overtakes() -> None:
    served = Served()
    fault_set = SetFault("one", fault())
    holds = Holds(Incoming(served.cnx), ManualClock())
    holds.stop(fault_set, None)
    served.peer.peer_sends(PING)
    assert served.takes() == b""
    assert not served.cnx.intake.wants_more
    fault_set.clear()
    await settle()
    assert served.cnx.commands == [pb.BaseCommand.PING]


async def test_a_connection_that_became_a_pipe_while_stopped_parks_no_frames() -> None:
    served = Served()
    fault_set = SetFault("one", fault())
    Holds(Incoming(served.cnx), ManualClock()).stop(fault_set, None)
    served.cnx.becomes_pipe()
    fault_set.clear()
    assert not served.cnx.intake.parks
