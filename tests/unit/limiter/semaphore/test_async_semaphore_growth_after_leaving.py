"""Growth waiting for the same account's growth goes first when the latter is released."""

from tests.support.limiters import fair


def test_growth_is_served_first_when_the_favoured_permit_of_its_account_is_released() -> None:
    # All is held; growth of the permit shared by ``sharer`` alone is favoured, beyond the share
    semaphore = fair(12)
    nothing = semaphore.request(0, owner="sharer").result()
    others = semaphore.request(5, owner="other").result()
    shared = semaphore.shared.new("t/x")
    semaphore.shared.join(shared, "sharer")
    first = semaphore.request(1, owner=shared).result()
    grown = semaphore.request_update(first, 7).result()
    # And another growth of the same account waits for the first, and new work for both
    waiting = semaphore.request_update(nothing, 8)
    new = semaphore.request(2, owner="newcomer")
    semaphore.shared.leave(shared, "sharer")
    assert grown.size == 0
    assert not waiting.done
    assert not new.done
    semaphore.release(others)
    assert waiting.done
    assert new.done


def test_growth_is_granted_when_its_account_no_longer_shares_the_favoured_permit() -> None:
    # Growth of the shared permit was favoured, so ``sharer``'s other growth beyond quota waits
    semaphore = fair(12)
    shared = semaphore.shared.new("t/x")
    semaphore.shared.join(shared, "sharer")
    together = semaphore.request(1, owner=shared).result()
    own = semaphore.request(2, owner="sharer").result()
    semaphore.shared.join(shared, "other")
    semaphore.request(2, owner="other")
    semaphore.request(2, owner="third")
    semaphore.request(0, owner="fourth")
    assert semaphore.request_update(together, 2).done
    waiting = semaphore.request_update(own, 3)
    assert not waiting.done
    semaphore.shared.leave(shared, "sharer")
    # The released permits are held by other accounts indefinitely
    assert waiting.result().size == 3
