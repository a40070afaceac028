"""A reservation has one owner, may be resized, and ends once."""

from contextlib import suppress

import pytest

from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.reservation import MemoryWaiter
from tests.support.clocks.manual_clock import ManualClock


def controller(limit_bytes: int = 100) -> MemoryLimitController:
    return MemoryLimitController(limit_bytes, clock=ManualClock())


def test_releasing_a_reservation_twice_frees_its_bytes_once() -> None:
    memory = controller()
    other = memory.force_reserve(30)
    reservation = memory.force_reserve(20)
    reservation.release()
    reservation.release()
    assert memory.current_usage == other.size == 30
    assert memory.statistics().reservations == 1
    assert (reservation.size, reservation.released) == (0, True)


def test_a_reservation_of_zero_bytes_is_live_until_released() -> None:
    memory = controller()
    reservation = memory.force_reserve(0)
    assert (memory.statistics().reservations, reservation.released) == (1, False)
    reservation.release()
    reservation.release()
    assert memory.statistics().reservations == 0


def test_growing_a_reservation_exceeds_the_limit_without_waiting() -> None:
    memory = controller(100)
    batch = memory.force_reserve(90)
    batch.resize(250)
    assert memory.current_usage == batch.size == 250
    assert memory.statistics().high_water_bytes == 250


def test_shrinking_a_reservation_serves_a_waiter() -> None:
    memory = controller(100)
    batch = memory.force_reserve(101)
    waiter = memory.request(10)
    batch.resize(100)
    assert waiter.done
    assert memory.current_usage == 110


def test_a_reservation_adjusts_by_a_difference_up_and_down() -> None:
    memory = controller()
    batch = memory.force_reserve(64)
    batch.adjust(6)
    assert memory.current_usage == batch.size == 70
    batch.adjust(-70)
    assert memory.current_usage == batch.size == 0
    assert memory.statistics().reservations == 1


def test_a_size_below_zero_is_rejected_and_changes_nothing() -> None:
    memory = controller()
    batch = memory.force_reserve(64)
    with pytest.raises(ValueError, match="cannot be negative: -1 bytes"):
        batch.resize(-1)
    with pytest.raises(ValueError, match="cannot be negative: -1 bytes"):
        batch.adjust(-65)
    assert memory.current_usage == batch.size == 64


def test_a_released_reservation_cannot_grow_again() -> None:
    memory = controller()
    batch = memory.force_reserve(64)
    batch.release()
    with pytest.raises(RuntimeError, match="was released"):
        batch.resize(1)
    assert memory.current_usage == 0


def test_a_block_releases_its_reservation_at_the_end_even_after_an_error() -> None:
    memory = controller()
    with suppress(KeyError), memory.force_reserve(64) as held:
        assert memory.current_usage == held.size == 64
        raise KeyError
    assert memory.current_usage == 0


def test_a_request_that_still_waits_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="still waiting"):
        MemoryWaiter(1).result()


def test_a_reservation_shows_its_state() -> None:
    reservation = controller().force_reserve(64)
    assert repr(reservation) == "<Reservation 64>"
    reservation.release()
    assert repr(reservation) == "<Reservation released>"
