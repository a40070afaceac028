"""Frames of one change: one write for each connection, and none is lost."""

from __future__ import annotations

import pytest

from broker.watches.updates import update_permit
from broker.watches.updates.update_permit import UpdatePermit
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import SharedMemory
from tests.support.clocks.manual_clock import ManualClock
from tests.support.watches.watching import Watching
from tests.unit.server.connection.test_served_connection import Served

DIRECT = LimitType.DIRECT_MEMORY


def writes(served: Served) -> list[int]:
    """Note the length of each write from now on."""
    lengths: list[int] = []
    write = served.peer.write

    def noted(data: bytes) -> None:
        lengths.append(len(data))
        write(data)

    served.peer.write = noted  # type: ignore[method-assign]
    return lengths


def new_limiter() -> AsyncDualMemoryLimiter:
    limit = MemoryLimit(1_000, 10, 25.0)
    return AsyncDualMemoryLimiter(limit, limit, ManualClock())


def acquired(limiter: AsyncDualMemoryLimiter | None = None) -> UpdatePermit:
    """Return a permit of 100 bytes that is paid."""
    permit = UpdatePermit()
    permit.size_bytes = 100
    assert permit.acquire(SharedMemory(limiter or new_limiter()), "t/n")
    return permit


@pytest.fixture
def limiter() -> AsyncDualMemoryLimiter:
    """What permits are paid with."""
    return new_limiter()


async def test_the_frames_of_a_connection_are_one_write_in_their_order() -> None:
    # Given
    one, other, permit = Served(), Served(), acquired()
    lengths = writes(one)
    # When
    for served, frame in ((one, b"a"), (other, b"b"), (one, b"cd")):
        assert permit.send(served.cnx, frame)
    permit.all_told()
    # Then
    assert (one.takes(), other.takes(), lengths) == (b"acd", b"b", [3])


async def test_what_has_left_does_not_leave_again() -> None:
    served, permit = Served(), acquired()
    permit.send(served.cnx, b"a")
    permit.flush()
    permit.all_told()
    assert served.takes() == b"a"


async def test_behind_what_is_queued_nothing_is_taken() -> None:
    served, permit = Served(), acquired()
    served.cnx.enqueue([b"queued"], 6)
    assert not permit.send(served.cnx, b"a")
    permit.all_told()
    assert served.takes() == b"queued"


async def test_what_was_queued_meanwhile_goes_first(limiter: AsyncDualMemoryLimiter) -> None:
    # Given
    served, permit = Served(), acquired(limiter)
    permit.send(served.cnx, b"a")
    served.cnx.enqueue([b"queued "], 7)
    # When
    permit.all_told()
    # Then
    assert limiter.acquired_permits(DIRECT) == 100
    assert served.takes() == b"queued a"
    assert limiter.acquired_permits(DIRECT) == 0


async def test_the_frames_of_a_peer_that_vanished_give_their_memory_back(
    limiter: AsyncDualMemoryLimiter,
) -> None:
    # Given
    served, permit = Served(), acquired(limiter)
    permit.send(served.cnx, b"a")
    served.cnx.abort()
    # When
    permit.all_told()
    # Then
    assert limiter.acquired_permits(DIRECT) == 0


@pytest.mark.parametrize("pays", [False, True])
async def test_what_the_kernel_leaves_waiting_is_weighed_as_paid_or_not(pays: bool) -> None:
    # Given
    served, permit = Served(), acquired()
    permit.pays = pays
    # When
    permit.send(served.cnx, b"a" * 100)
    permit.all_told()
    # Then
    outbound = served.totals.outbound
    assert outbound.pending_bytes >= 100
    assert outbound.pending_bytes - outbound.unpaid_bytes == (100 if pays else 0)
    assert served.takes() == b"a" * 100


async def test_so_much_is_joined_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    monkeypatch.setattr(update_permit, "MAX_JOINED_BYTES", 10)
    served, permit = Served(), acquired()
    served.peer.reads_at_once = True
    lengths = writes(served)
    # When
    taken = [permit.send(served.cnx, b"four") for _ in range(5)]
    permit.all_told()
    # Then
    assert (all(taken), lengths) == (True, [8, 8, 4])
    assert bytes(served.peer.received) == 5 * b"four"


async def test_who_takes_none_of_what_was_joined_is_sent_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given
    monkeypatch.setattr(update_permit, "MAX_JOINED_BYTES", 10)
    served, permit = Served(), acquired()
    # When
    taken = [permit.send(served.cnx, b"four") for _ in range(5)]
    permit.all_told()
    # Then
    assert taken == [True, True, False, False, False]
    assert served.takes() == b"fourfour"


async def test_what_breaks_for_one_connection_ends_that_one_only(
    limiter: AsyncDualMemoryLimiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    broken, well, permit = Served(), Served(), acquired(limiter)

    def breaks(*_: object) -> bool:
        raise MemoryError("no room to join")

    monkeypatch.setattr(broken.cnx, "write_through", breaks)
    for served in (broken, well):
        permit.send(served.cnx, b"a")
    # When
    permit.all_told()
    # Then
    assert (broken.peer.is_closing(), well.takes()) == (True, b"a")
    assert limiter.acquired_permits(DIRECT) == 0


async def test_a_change_is_one_write_for_all_who_watch_on_a_connection() -> None:
    # Given: three watchers of one set on one connection
    watching = Watching("a")
    served = watching.connection()
    for watcher_id in range(3):
        await watching.watcher(served, watcher_id).answer(watcher_id, None)
    served.peer.received.clear()
    lengths = writes(served)
    # When
    watching.change(added=["b"])
    # Then
    assert lengths == [len(served.peer.received)]
    assert bytes(served.peer.received).count(b"persistent://t/n/b") == 3
    assert (watching.totals.updates, watching.held_bytes) == (3, 0)
