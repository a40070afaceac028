"""Waiting growth: the oldest, smallest and youngest request, and detection of deadlock."""

from limiter.admission.places import GrowthQueue
from limiter.permits.account import Waiter
from limiter.permits.permit import Permit


class Growths:
    """A queue, with the registered permits."""

    def __init__(self) -> None:
        self.queue = GrowthQueue()

    def hold(self, size: int) -> Permit:
        permit = Permit(size)
        self.queue.took_on(permit)
        return permit

    def grow(self, permit: Permit, size: int) -> Waiter:
        waiter = Waiter(size, permit)
        self.queue.begins(waiter, permit)
        self.queue.add(waiter)
        return waiter

    def give_back(self, permit: Permit) -> None:
        size, permit.size = permit.size, 0
        self.queue.gave_back(permit, size)


def test_the_first_growth_is_the_oldest_and_the_last_is_the_youngest() -> None:
    growths = Growths()
    waiters = [growths.grow(growths.hold(1), 5) for _ in range(3)]
    assert growths.queue.oldest() is waiters[0]
    assert growths.queue.youngest() is waiters[2]


def test_the_smallest_growth_is_by_additional_permits_not_by_requested_size() -> None:
    growths = Growths()
    growths.grow(growths.hold(1), 5)
    smallest = growths.grow(growths.hold(90), 92)
    assert growths.queue.smallest() is smallest


def test_growth_of_a_released_permit_needs_its_full_size() -> None:
    growths = Growths()
    permit = growths.hold(90)
    growths.grow(permit, 92)
    other = growths.grow(growths.hold(1), 5)
    growths.give_back(permit)
    assert growths.queue.smallest() is other


def test_every_holder_waits_when_each_permit_above_zero_is_growing() -> None:
    growths = Growths()
    first, second = growths.hold(5), growths.hold(5)
    growths.hold(0)
    growths.grow(first, 6)
    before = growths.queue.every_holder_waits()
    growths.grow(second, 6)
    assert (before, growths.queue.every_holder_waits()) == (False, True)


def test_no_holder_waits_when_no_permits_are_held() -> None:
    growths = Growths()
    growths.grow(growths.hold(0), 6)
    assert not growths.queue.every_holder_waits()


def test_a_permit_growing_twice_counts_as_a_single_holder() -> None:
    growths = Growths()
    permit = growths.hold(5)
    growths.hold(5)
    growths.grow(permit, 6)
    again = growths.grow(permit, 7)
    assert not growths.queue.every_holder_waits()
    growths.queue.discard(again)
    growths.queue.ends(again, permit)
    assert not growths.queue.every_holder_waits()


def test_a_permit_released_during_growth_is_no_longer_a_holder() -> None:
    growths = Growths()
    first, second = growths.hold(5), growths.hold(5)
    growths.grow(first, 6)
    growths.grow(second, 6)
    growths.give_back(first)
    # The only remaining request still waits
    assert growths.queue.every_holder_waits()


def test_a_permit_restored_during_growth_is_a_holder_again() -> None:
    growths = Growths()
    permit = growths.hold(5)
    growths.grow(permit, 6)
    growths.give_back(permit)
    assert not growths.queue.every_holder_waits()
    permit.size = 5
    growths.queue.took_on(permit)
    assert growths.queue.every_holder_waits()


def test_growth_of_a_restored_permit_needs_less_again() -> None:
    growths = Growths()
    permit = growths.hold(5)
    growths.grow(growths.hold(1), 4)
    again = growths.grow(permit, 6)
    growths.give_back(permit)
    assert growths.queue.smallest() is not again
    permit.size = 5
    growths.queue.took_on(permit)
    assert growths.queue.smallest() is again


def test_growth_waiting_for_its_own_account_counts_for_a_stall_but_is_not_the_oldest() -> None:
    growths = Growths()
    permit = growths.hold(5)
    parked = Waiter(6, permit)
    growths.queue.begins(parked, permit)
    assert growths.queue.oldest() is None
    assert growths.queue.every_holder_waits()
    assert growths.queue.oldest_within(1) is growths.queue.youngest() is parked


def test_the_oldest_growth_that_fits_is_found_behind_an_older_growth_too_large_to_fit() -> None:
    growths = Growths()
    growths.grow(growths.hold(1), 50)
    fits = growths.grow(growths.hold(1), 9)
    growths.grow(growths.hold(1), 5)
    assert growths.queue.oldest_within(8) is fits
    assert growths.queue.oldest_within(3) is None
