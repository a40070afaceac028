"""Growth that waited for its account's own growth goes first when that is given back."""

from __future__ import annotations

from tests.support.limiters import fair


def test_a_growth_goes_first_when_what_its_account_favoured_is_left() -> None:
    # Given: all is held; the growth of what ``sharer`` shares alone is favoured, beyond its share
    semaphore = fair(12)
    nothing = semaphore.request(0, owner="sharer").result()
    others = semaphore.request(5, owner="other").result()
    shared = semaphore.shared.new("t/x")
    semaphore.shared.join(shared, "sharer")
    first = semaphore.request(1, owner=shared).result()
    grown = semaphore.request_update(first, 7).result()
    # And another growth of the same account waits for that one, and new work for both
    waiting = semaphore.request_update(nothing, 8)
    new = semaphore.request(2, owner="newcomer")
    # When
    semaphore.shared.leave(shared, "sharer")
    # Then
    assert grown.size == 0
    assert not waiting.done
    assert not new.done
    semaphore.release(others)
    assert waiting.done
    assert new.done
