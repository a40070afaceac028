from broker.messages.producer import MAX_CLOSED, ClosedProducers
from tests.support.clocks.manual_clock import ManualClock


def test_a_closed_producer_is_remembered_for_a_while() -> None:
    clock = ManualClock()
    closed = ClosedProducers(clock, 30.0)
    closed.add(1)
    assert 1 in closed
    assert 2 not in closed
    clock.advance(30.5)
    assert 1 not in closed


def test_a_reused_producer_id_is_forgotten() -> None:
    closed = ClosedProducers(ManualClock(), 30.0)
    closed.add(1)
    closed.discard(1)
    assert 1 not in closed


def test_the_number_of_remembered_producers_is_bounded() -> None:
    clock = ManualClock()
    closed = ClosedProducers(clock, 30.0)
    for producer_id in range(MAX_CLOSED + 10):
        closed.add(producer_id)
    assert len(closed) == MAX_CLOSED
    assert 0 not in closed
    clock.advance(31.0)
    closed.add(1)
    assert len(closed) == 1
