"""Matching of listings with patterns that only a backtracking engine can compile.

Processes of their own do it, a piece of the listing at a time. The time limit follows the number of
names, since such an engine takes a microsecond for each, and counts their processor time, since
they are nice; a pattern that never ends is known by its first piece. Who has had a process for long
gives it to the next who waits.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from broker.patterns.errors import InvalidPatternError
from limiter.clock import deadline
from server.tasks.worker_processes import WorkerFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.patterns.path_columns import PathRun
    from broker.patterns.pattern import Backtracking
    from broker.patterns.workers import PatternWorker, PatternWorkers
    from broker.topic_lists.sequence import Selection
    from limiter.clock import Clock

LIMIT_NAMES = 100_000
"""Names of a listing that have floodgatePatternTimeoutMs together; more have more."""
MOST_SECONDS = 20.0
"""The limit of any number of names, if the key is not longer: a client waits for 30 s."""
PIECE_CLOCK_SECONDS, CLOCK_SECONDS = 20.0, 60.0
"""By the clock, a piece and all of them have so long at the most, if the key is not longer."""
_REMEDY = "write it without look-around and back-references, or raise floodgatePatternTimeoutMs"


class Piece(NamedTuple):
    """Some names of a listing, and where those that match are kept."""

    selection: Selection
    run: PathRun


class BacktrackingFilter:
    """Matches listings in processes.

    Args:
        workers: The processes.
        clock: The source of time.
        seconds: floodgatePatternTimeoutMs: the processor time for a piece, and for LIMIT_NAMES
            names together.
    """

    def __init__(self, workers: PatternWorkers, clock: Clock, seconds: float) -> None:
        self._workers = workers
        self._clock = clock
        self._seconds = seconds

    async def keep(self, pattern: Backtracking, pieces: Iterator[Piece], count: int) -> None:
        """Keep the names of some pieces that match.

        Args:
            pattern: The pattern.
            pieces: The pieces; each is made when its turn comes.
            count: The names of the listing, those that are in no piece included.

        Raises:
            InvalidPatternError: It takes too long, or its process ended.
        """
        limit = _Limit(self._seconds, count)
        try:
            await self._take_turns(pattern, pieces, limit)
        except TimeoutError:
            refusal = InvalidPatternError(f"the pattern {pattern.text!r} {limit}: {_REMEDY}")
        except WorkerFailedError as error:
            refusal = InvalidPatternError(f"{error}; the pattern {pattern.text!r} was left")
        else:
            return
        # Not within the handlers: it would keep all that their frames have until it is collected.
        raise refusal

    async def _take_turns(
        self, pattern: Backtracking, pieces: Iterator[Piece], limit: _Limit
    ) -> None:
        """Match one turn after the other; the wait for each has the limit of the whole work.

        (One limit for both would let those who waited together have their turns when their time is
        nearly up, and each would cost a process.)
        """
        piece = next(pieces, None)
        while piece is not None:
            limit.names = 0
            async with AsyncExitStack() as stack:
                async with deadline(self._clock, limit.seconds):
                    worker = await stack.enter_async_context(self._workers.worker())
                piece = await self._turn(worker, pattern, piece, pieces, limit)

    async def _turn(
        self,
        worker: PatternWorker,
        pattern: Backtracking,
        piece: Piece | None,
        pieces: Iterator[Piece],
        limit: _Limit,
    ) -> Piece | None:
        """Match pieces, where others wait for so long only; return the next, None behind the last.

        Raises:
            TimeoutError: A piece takes too long, or all of them.
        """
        turn_ends = self._clock.now() + self._seconds
        while piece is not None:
            selection, (run, paths) = piece
            limit.names = len(run)
            if limit.left <= 0:
                raise TimeoutError
            begun, seconds = self._clock.now(), min(self._seconds, limit.left)
            async with deadline(self._clock, min(limit.clock_left, limit.piece_clock_seconds)):
                mask, took_seconds = await worker.matching(pattern.translation, paths, seconds)
            limit.left -= took_seconds
            limit.clock_left -= self._clock.now() - begun
            run.keep(selection, mask)
            piece = next(pieces, None)
            if self._clock.now() >= turn_ends and self._workers.wanted:
                break
        return piece


class _Limit:
    """The time limit of one evaluation, in words.

    Attributes:
        seconds: For all names, of processor time.
        left: What is left of that.
        piece_clock_seconds: For a piece, by the clock.
        clock_left: What is left for all of them, by the clock.
        names: The names of the piece under way; 0 while it waits for a process.
    """

    def __init__(self, seconds: float, count: int) -> None:
        self._key = f"floodgatePatternTimeoutMs={round(seconds * 1_000)}"
        self._seconds = seconds
        self._count = count
        self.seconds = max(seconds, min(seconds * count / LIMIT_NAMES, MOST_SECONDS))
        self.left = self.seconds
        self.piece_clock_seconds = max(seconds, PIECE_CLOCK_SECONDS)
        self.clock_left = max(seconds, CLOCK_SECONDS)
        self.names = 0

    def __str__(self) -> str:
        """What was beyond the limit."""
        whole = self._key
        if self.seconds > self._seconds:
            whole = f"{self.seconds:g} s ({self._key} for each {LIMIT_NAMES} topics"
            whole += f", at most {MOST_SECONDS:g} s)" if self.seconds == MOST_SECONDS else ")"
        if not self.names:
            return f"had no turn within {whole}, while others like it were evaluated"
        if self.left > self._seconds:
            return f"takes more than {self._key} on {self.names} of {self._count} topics"
        return f"takes more than {whole} on {self._count} topics"
