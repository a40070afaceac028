"""Frames of one change: one write for each connection, and none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.watches.joined_frames import JoinedFrames
from tests.support.watching import Watching
from tests.unit.server.test_served_connection import Served

if TYPE_CHECKING:
    from collections.abc import Callable


class Parts:
    """Counts who takes part in a payment, and whose part is given back."""

    def __init__(self) -> None:
        self.taken = 0
        self.left = 0

    def part(self) -> Callable[[], object]:
        self.taken += 1
        return self._left

    def _left(self) -> None:
        self.left += 1


def writes(served: Served) -> list[int]:
    """Note the length of each write from now on."""
    lengths: list[int] = []
    write = served.peer.write

    def noted(data: bytes) -> None:
        lengths.append(len(data))
        write(data)

    served.peer.write = noted  # type: ignore[method-assign]
    return lengths


async def test_the_frames_of_a_connection_are_one_write_in_their_order() -> None:
    # Given
    one, other, frames = Served(), Served(), JoinedFrames()
    lengths = writes(one)
    # When
    for cnx, frame in ((one, b"a"), (other, b"b"), (one, b"cd")):
        assert frames.add(cnx.cnx, frame)
    frames.leave(Parts().part, pays=False)
    # Then
    assert (one.takes(), other.takes(), lengths) == (b"acd", b"b", [3])


async def test_what_has_left_does_not_leave_again() -> None:
    served, frames = Served(), JoinedFrames()
    frames.add(served.cnx, b"a")
    for _ in range(2):
        frames.leave(Parts().part, pays=False)
    assert served.takes() == b"a"


async def test_behind_what_is_queued_nothing_is_taken() -> None:
    served, frames = Served(), JoinedFrames()
    served.cnx.enqueue([b"queued"], 6)
    assert not frames.add(served.cnx, b"a")
    frames.leave(Parts().part, pays=False)
    assert served.takes() == b"queued"


async def test_what_was_queued_meanwhile_goes_first() -> None:
    # Given
    served, frames, parts = Served(), JoinedFrames(), Parts()
    frames.add(served.cnx, b"a")
    served.cnx.enqueue([b"queued "], 7)
    # When
    frames.leave(parts.part, pays=True)
    # Then
    assert (parts.taken, parts.left) == (1, 0)
    assert served.takes() == b"queued a"
    assert (parts.taken, parts.left) == (1, 1)


async def test_the_frames_of_a_peer_that_vanished_give_their_part_back() -> None:
    # Given
    served, frames, parts = Served(), JoinedFrames(), Parts()
    frames.add(served.cnx, b"a")
    served.cnx.abort()
    # When
    frames.leave(parts.part, pays=True)
    # Then
    assert parts.taken == parts.left


@pytest.mark.parametrize("pays", [False, True])
async def test_what_the_kernel_leaves_waiting_is_weighed_as_paid_or_not(pays: bool) -> None:
    # Given
    served, frames, parts = Served(), JoinedFrames(), Parts()
    served.peer.reads_at_once = False
    # When
    frames.add(served.cnx, b"a" * 100)
    frames.leave(parts.part, pays=pays)
    # Then
    outbound = served.totals.outbound
    assert outbound.pending_bytes >= 100
    assert outbound.pending_bytes - outbound.unpaid_bytes == (100 if pays else 0)
    served.takes()
    assert (parts.taken, parts.left) == (1, 1)


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
