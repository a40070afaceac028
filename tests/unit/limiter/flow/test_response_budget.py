"""Answers in the making: counted in advance, exceeding the bound by at most one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.flow.causes import PauseCause
from limiter.flow.read_gate import ReadGate
from limiter.flow.response_budget import SMALL_RESPONSE_BYTES, ResponseBudget
from limiter.flow.totals import FlowTotals
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many

IN_FLIGHT = PauseCause.IN_FLIGHT_RESPONSE_BYTES
BOUND = 100_000


class Connection:
    """The budget of one connection, with gate and process."""

    def __init__(self, max_bytes: int = BOUND, totals: FlowTotals | None = None) -> None:
        self.totals = totals or FlowTotals(ManualClock())
        self.gate = ReadGate(lambda: None, lambda: None, self.totals)
        self.budget = ResponseBudget(max_bytes, self.gate, self.totals)


@pytest.fixture
def connection() -> Connection:
    return Connection()


def test_reserved_bytes_are_counted_until_released() -> None:
    one = Connection()
    two = Connection(totals=one.totals)
    first, _ = one.budget.reserve(20_000), two.budget.reserve(30_000)
    assert (one.budget.reserved_bytes, one.totals.response_bytes) == (20_000, 50_000)
    first.release()
    assert (one.budget.reserved_bytes, one.totals.response_bytes) == (0, 30_000)


@pytest.mark.parametrize("size", [0, 1, SMALL_RESPONSE_BYTES])
def test_a_reservation_counts_at_least_the_bytes_of_a_small_response(size: int) -> None:
    budget = Connection().budget
    budget.reserve(size)
    assert budget.reserved_bytes == SMALL_RESPONSE_BYTES == 8_192


def test_a_response_of_unknown_size_reserves_the_whole_budget() -> None:
    budget = Connection().budget
    budget.reserve(None)
    assert budget.reserved_bytes == BOUND


def test_without_a_bound_a_response_of_unknown_size_counts_as_a_small_response() -> None:
    budget = Connection(0).budget
    budget.reserve(None)
    assert budget.reserved_bytes == SMALL_RESPONSE_BYTES


@pytest.mark.parametrize("size", [BOUND - 1, BOUND, 10 * BOUND, None])
def test_a_single_response_of_any_size_does_not_pause_reading(size: int | None) -> None:
    connection = Connection()
    connection.budget.reserve(size)
    assert connection.gate.open


def test_two_responses_of_unknown_size_pause_reading(connection: Connection) -> None:
    connection.budget.reserve(None)
    connection.budget.reserve(None)
    assert connection.gate.is_closed_for(IN_FLIGHT)


@pytest.mark.parametrize(("rest", "paused"), [(BOUND - 1, False), (BOUND, True)])
@pytest.mark.parametrize("largest_first", [True, False])
def test_reading_pauses_when_all_but_the_largest_response_reach_the_bound(
    connection: Connection, rest: int, paused: bool, largest_first: bool
) -> None:
    sizes = [rest // 2, rest - rest // 2]
    for size in [2 * BOUND, *sizes] if largest_first else [*sizes, 2 * BOUND]:
        connection.budget.reserve(size)
    assert connection.gate.is_closed_for(IN_FLIGHT) is paused


def test_the_request_that_exceeds_the_bound_is_served(connection: Connection) -> None:
    connection.budget.reserve(BOUND)
    reservation = connection.budget.reserve(10 * BOUND)
    assert reservation.size_bytes == 10 * BOUND
    assert connection.budget.reserved_bytes == 11 * BOUND
    assert not connection.gate.open


@pytest.mark.parametrize(("left", "opens"), [(BOUND // 2, True), (BOUND // 2 + 1, False)])
def test_reading_resumes_when_all_but_the_largest_response_are_at_half_of_the_bound(
    connection: Connection, left: int, opens: bool
) -> None:
    connection.budget.reserve(3 * BOUND)
    connection.budget.reserve(left)
    reservation = connection.budget.reserve(BOUND)
    reservation.release()
    assert connection.gate.open is opens


def test_when_the_largest_response_is_released_the_next_largest_is_disregarded(
    connection: Connection,
) -> None:
    largest = connection.budget.reserve(3 * BOUND)
    connection.budget.reserve(2 * BOUND)
    connection.budget.reserve(BOUND // 2)
    paused = not connection.gate.open
    largest.release()
    assert paused
    assert connection.gate.open


def test_a_released_response_is_no_longer_the_disregarded_largest(connection: Connection) -> None:
    connection.budget.reserve(5 * BOUND).release()
    for _ in range(3):
        connection.budget.reserve(BOUND // 2)
    assert connection.gate.is_closed_for(IN_FLIGHT)


@pytest.mark.parametrize("bound", [0, -1])
def test_without_a_bound_reading_never_pauses_and_all_bytes_are_counted(bound: int) -> None:
    connection = Connection(bound)
    reservations = [connection.budget.reserve(size) for size in (10**9, 10**8)]
    assert connection.gate.open
    assert connection.totals.response_bytes == 1_100_000_000
    for reservation in reservations:
        reservation.release()
    assert connection.totals.response_bytes == 0


def test_a_reservation_is_released_once() -> None:
    budget = Connection().budget
    budget.reserve(20_000)
    reservation = budget.reserve(30_000)
    reservation.release()
    reservation.release()
    assert budget.reserved_bytes == 20_000


def test_a_block_releases_its_reservation_even_after_an_error() -> None:
    budget = Connection().budget
    within = []

    def answers() -> None:
        with budget.reserve(20_000):
            within.append(budget.reserved_bytes)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        answers()
    assert (within, budget.reserved_bytes) == ([20_000], 0)


def test_a_reservation_released_within_its_block_is_not_released_again() -> None:
    budget = Connection().budget
    with budget.reserve(20_000) as reservation:
        reservation.release()
        budget.reserve(20_000)
    assert budget.reserved_bytes == 20_000


def test_a_lifted_bound_resumes_reading_immediately_and_never_pauses_again(
    connection: Connection,
) -> None:
    reservations = [connection.budget.reserve(BOUND) for _ in range(2)]
    paused = not connection.gate.open
    connection.budget.lift()
    assert paused
    assert connection.gate.open
    reservations += [connection.budget.reserve(10 * BOUND) for _ in range(2)]
    assert connection.gate.open
    assert connection.totals.response_bytes == 22 * BOUND
    for reservation in reservations:
        reservation.release()
    assert connection.totals.response_bytes == 0


def test_a_gate_stays_closed_for_further_causes_when_the_budget_has_room_again(
    connection: Connection,
) -> None:
    connection.budget.reserve(BOUND)
    reservation = connection.budget.reserve(BOUND)
    connection.gate.close_for(PauseCause.COOLDOWN)
    reservation.release()
    assert repr(connection.gate) == "<ReadGate closed: COOLDOWN>"


def test_releases_after_the_end_of_the_gate_return_all_sums_to_zero(connection: Connection) -> None:
    reservations = [connection.budget.reserve(BOUND) for _ in range(2)]
    connection.gate.end()
    for reservation in reservations:
        reservation.release()
    assert connection.totals.response_bytes == 0
    assert connection.totals.connections[IN_FLIGHT] == 0


@settings(max_examples=many(200), deadline=None)
@given(st.lists(st.one_of(st.integers(0, 2 * BOUND), st.none()), max_size=40))
def test_in_any_order_a_closed_gate_means_over_half_the_bound_and_an_open_gate_below_the_bound(
    steps: list[int | None],
) -> None:
    connection = Connection()
    live = []
    for step in steps:
        if step is not None:
            live.append(connection.budget.reserve(step))
        elif live:
            live.pop(len(live) // 2).release()
        sizes = sorted(one.size_bytes for one in live)
        assert connection.budget.reserved_bytes == connection.totals.response_bytes == sum(sizes)
        beside_the_largest = sum(sizes[:-1])
        if connection.gate.open:
            assert beside_the_largest < BOUND
        else:
            assert 2 * beside_the_largest > BOUND
    for one in live:
        one.release()
    assert connection.gate.open
    assert connection.totals.response_bytes == 0
