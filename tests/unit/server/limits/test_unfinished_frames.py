"""A bound on the unfinished frames of all connections: the oldest gives way."""

from server.limits.connections import Limit, Refusals
from server.limits.unfinished_frames import UnfinishedFrames


class Keeper:
    """A connection that records the closing."""

    def __init__(self, frames: UnfinishedFrames) -> None:
        self._frames = frames
        self.ended: tuple[int, int] | None = None

    def keeps(self, size_bytes: int, number: int = 1) -> None:
        """Keep some bytes of the first frame, or of a later frame."""
        self._frames.keeps(self, number, size_bytes)

    def unfinished_too_long(self, size_bytes: int, most_bytes: int) -> None:
        """Note the figures."""
        self.ended = size_bytes, most_bytes


def three(max_bytes: int) -> tuple[UnfinishedFrames, list[Keeper]]:
    """Return a bound, and three connections keeping 100 bytes each."""
    frames = UnfinishedFrames(max_bytes, Refusals())
    keepers = [Keeper(frames) for _ in range(3)]
    for keeper in keepers:
        keeper.keeps(100)
    return frames, keepers


def test_kept_bytes_of_unfinished_frames_are_summed() -> None:
    frames, (first, second, third) = three(300)
    assert frames.kept_bytes == 300
    # One grows, one ends, one begins another frame
    second.keeps(0)
    first.keeps(140)
    third.keeps(120, number=2)
    assert frames.kept_bytes == 260
    assert not any((first.ended, second.ended, third.ended))


def test_above_the_bound_the_oldest_unfinished_frame_is_closed() -> None:
    refusals = Refusals()
    frames = UnfinishedFrames(300, refusals)
    first, second, third = (Keeper(frames) for _ in range(3))
    for keeper in (first, second, third):
        keeper.keeps(100)
    third.keeps(101)
    assert first.ended == (100, 300)
    assert second.ended is None
    assert third.ended is None
    assert frames.kept_bytes == 201
    assert refusals.counts[Limit.UNFINISHED_FRAMES] == 1


def test_as_many_unfinished_frames_are_closed_as_necessary() -> None:
    frames, (first, second, third) = three(300)
    third.keeps(250)
    assert first.ended
    assert second.ended
    assert not third.ended
    assert frames.kept_bytes == 250


def test_a_connection_that_begins_a_new_frame_is_the_youngest() -> None:
    _, (first, second, third) = three(300)
    first.keeps(100, number=2)
    third.keeps(150)
    assert second.ended
    assert not first.ended


def test_further_bytes_of_a_frame_do_not_change_its_age() -> None:
    _, (first, second, _) = three(310)
    first.keeps(110)
    second.keeps(120)
    assert first.ended == (110, 310)


def test_a_single_unfinished_frame_may_exceed_the_bound() -> None:
    frames = UnfinishedFrames(300)
    keeper = Keeper(frames)
    keeper.keeps(1_000)
    assert not keeper.ended
    assert frames.kept_bytes == 1_000


def test_without_a_bound_unfinished_bytes_are_still_counted() -> None:
    frames, keepers = three(0)
    keepers[0].keeps(1 << 40)
    assert not any(keeper.ended for keeper in keepers)
    assert frames.kept_bytes == (1 << 40) + 200
