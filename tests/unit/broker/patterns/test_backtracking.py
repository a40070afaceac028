"""The share of processes available to a backtracking engine: by names, pieces and turns."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.patterns.backtracking import (
    CLOCK_SECONDS,
    MOST_SECONDS,
    PIECE_CLOCK_SECONDS,
    BacktrackingFilter,
    Piece,
)
from broker.patterns.errors import InvalidPatternError
from broker.patterns.pattern import Backtracking
from broker.patterns.plain_paths import PathRun
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from broker.topic_lists.block import Mask

PATTERN = Backtracking("t/n/(?!x).*")
PIECE_NAMES = 10_000


class Run:
    """A piece of a listing, of which only the number of names matters."""

    def __init__(self, kept: list[object]) -> None:
        self._kept = kept

    def __len__(self) -> int:
        return PIECE_NAMES

    def keep(self, _: object, mask: Mask) -> None:
        self._kept.append(mask)


class Processes:
    """Processes with scripted durations.

    Attributes:
        took: Processor time of each piece, in seconds.
        lasted: Wall-clock time of each piece, in seconds.
        wanted: Whether other tasks wait for a process.
        lent: How often a process was lent.
    """

    def __init__(self, took: float = 0.0, lasted: float = 0.0, *, wanted: bool = False) -> None:
        self.clock = ManualClock()
        self.took = took
        self.lasted = lasted
        self.wanted = wanted
        self.lent = 0
        self.places = asyncio.Semaphore(1)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Processes]:
        async with self.places:
            self.lent += 1
            yield self

    async def matching(self, _: str, __: object, seconds: float) -> tuple[Mask, float]:
        if self.took > seconds:
            raise TimeoutError
        self.clock.advance(self.lasted)
        await asyncio.sleep(0)  # A deadline may have passed.
        return b"\1" * PIECE_NAMES, self.took

    async def match(self, count: int, seconds: float = 1.0) -> int:
        """Match a listing of ``names`` names; return the number of matched pieces."""
        kept: list[object] = []
        pieces = count // PIECE_NAMES

        def made() -> Iterator[Piece]:
            for _ in range(pieces):
                yield Piece(cast("Any", None), PathRun(cast("Any", Run(kept)), cast("Any", None)))

        matcher = BacktrackingFilter(cast("Any", self), self.clock, seconds)
        await matcher.keep(PATTERN, made(), count)
        return len(kept)

    async def refusal(self, count: int, seconds: float = 1.0) -> str:
        with pytest.raises(InvalidPatternError) as caught:
            await self.match(count, seconds)
        return str(caught.value)


KEY = "floodgatePatternTimeoutMs"
REMEDY = f"write it without look-around and back-references, or raise {KEY}"


@pytest.mark.parametrize(
    ("count", "took", "seconds", "enough"),
    [
        (100_000, 0.1, 1.0, True),
        (100_000, 0.11, 1.0, False),
        (1_000_000, 0.1, 1.0, True),
        (1_000_000, 0.11, 1.0, False),
        (2_000_000, 0.1, 1.0, True),
        (10_000_000, 0.0199, 1.0, True),
        (10_000_000, 0.0201, 1.0, False),
        (10_000_000, 0.0599, 60.0, True),
        (10_000_000, 0.0601, 60.0, False),
    ],
)
async def test_the_time_limit_grows_with_the_number_of_names_up_to_a_bound(
    count: int, took: float, seconds: float, enough: bool
) -> None:
    processes = Processes(took * 0.9999)
    if enough:
        assert await processes.match(count, seconds) == count // PIECE_NAMES
    else:
        assert "takes more than" in await processes.refusal(count, seconds)


@pytest.mark.parametrize(
    ("count", "took", "what"),
    [
        (100_000, 0.5, f"takes more than {KEY}=1000 on 100000 topics"),
        (100_000, 1.5, f"takes more than {KEY}=1000 on 100000 topics"),
        (1_000_000, 1.5, f"takes more than {KEY}=1000 on 10000 of 1000000 topics"),
        (
            1_000_000,
            0.5,
            f"takes more than 10 s ({KEY}=1000 for each 100000 topics) on 1000000 topics",
        ),
        (
            5_000_000,
            0.5,
            f"takes more than 20 s ({KEY}=1000 for each 100000 topics, at most 20 s) on "
            "5000000 topics",
        ),
    ],
)
async def test_a_refused_pattern_is_reported_with_limit_names_and_remedy(count, took, what) -> None:
    assert await Processes(took).refusal(count) == f"the pattern '{PATTERN.text}' {what}: {REMEDY}"


@pytest.mark.parametrize(
    ("lasted", "pieces"), [(PIECE_CLOCK_SECONDS + 1, 0), (PIECE_CLOCK_SECONDS - 1, 3)]
)
async def test_wall_clock_time_is_bounded_per_piece_and_in_total(
    lasted: float, pieces: int
) -> None:
    processes = Processes(0.001, lasted)
    begun = processes.clock.now()
    assert "takes more than" in await processes.refusal(1_000_000)
    assert processes.clock.now() - begun == (pieces + 1) * lasted
    assert pieces * lasted < CLOCK_SECONDS


async def test_a_long_running_pattern_returns_its_process_while_a_task_waits() -> None:
    processes = Processes(0.01, 0.4, wanted=True)
    assert await processes.match(100_000) == 10
    assert processes.lent == 4


async def test_a_process_is_kept_while_no_task_waits() -> None:
    processes = Processes(0.01, 0.4)
    assert await processes.match(100_000) == 10
    assert processes.lent == 1


@pytest.mark.parametrize(("count", "seconds"), [(100_000, 1.0), (1_000_000, 10.0)])
async def test_the_wait_for_a_process_has_the_time_limit_of_the_matching(
    count: int, seconds: float
) -> None:
    processes = Processes()
    await processes.places.acquire()
    asking = await started(processes.refusal(count))
    processes.clock.advance(seconds - 0.1)
    await settle()
    assert not asking.done()
    processes.clock.advance(0.2)
    assert "got no process within" in await asking


def test_the_longest_time_limit_is_below_the_client_timeout() -> None:
    assert MOST_SECONDS < 30
