"""Permits for metadata requests."""

from limiter.flow.lookup_semaphore import LookupPermit, LookupSemaphore


def place_of(lookups: LookupSemaphore, owner: str = "cnx") -> LookupPermit:
    permit = lookups.try_acquire(owner)
    assert permit is not None
    return permit


def test_a_lookup_beyond_the_limit_is_refused_until_a_permit_is_released() -> None:
    lookups = LookupSemaphore(2)
    places = [place_of(lookups), place_of(lookups)]
    assert lookups.try_acquire("cnx") is None
    assert lookups.pending_requests == 2
    places[0].release()
    place_of(lookups)
    assert lookups.pending_requests == 2


def test_a_lookup_permit_is_held_for_a_block_and_released_once() -> None:
    lookups = LookupSemaphore(2)
    place_of(lookups)
    with place_of(lookups) as place:
        inside = lookups.pending_requests
        place.release()
    place.release()
    assert (inside, lookups.pending_requests) == (2, 1)


def test_a_leaked_lookup_permit_stays_acquired() -> None:
    lookups = LookupSemaphore(2)
    with place_of(lookups) as place:
        place.leak()
        place.leak()
    lookups.cancel_owner("cnx")
    assert lookups.pending_requests == 1
    assert lookups._owned == {}


def test_a_released_lookup_permit_cannot_leak() -> None:
    lookups = LookupSemaphore(2)
    place = place_of(lookups)
    place.release()
    place.leak()
    assert lookups.pending_requests == 0


def test_cancel_owner_releases_all_permits_of_its_owner_only() -> None:
    lookups = LookupSemaphore(5)
    places = [place_of(lookups, "gone"), place_of(lookups, "gone"), place_of(lookups, "stays")]
    lookups.cancel_owner("gone")
    freed_at_once = lookups.pending_requests == 1
    for place in places[:2]:
        place.release()
    assert freed_at_once
    assert lookups.pending_requests == 1
    places[2].release()
    assert (lookups.pending_requests, lookups._owned) == (0, {})
