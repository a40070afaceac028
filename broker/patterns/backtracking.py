"""Matching of topic lists in worker processes, for patterns that need a backtracking engine.

Worker processes match a list of topics piece by piece. The time limit grows with the number of
names, since a backtracking engine takes a microsecond for each, and counts processor time, since
the workers are nice; the first piece exposes an endless pattern. An evaluation passes its process
on to the next waiter after a time slice.
"""

from __future__ import annotations

import sys
from array import array
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.patterns.errors import InvalidPatternError
from broker.patterns.worker import TOOK, pack_job
from broker.topic_lists.block import offsets_of
from limiter.clock import deadline
from server.tasks.worker_processes import (
    MAX_WORKERS,
    WorkerFailedError,
    WorkerProcess,
    WorkerProcesses,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.patterns.pattern import Backtracking
    from broker.patterns.plain_paths import PathRun, Paths
    from broker.topic_lists.block import Mask
    from broker.topic_lists.sequence import Selection
    from limiter.clock import Clock

_SCRIPT = str(Path(__file__).with_name("worker.py"))


class PatternWorker(WorkerProcess):
    """A worker process that matches one pattern at a time."""

    called = "pattern worker"

    async def matching(self, pattern: str, paths: Paths, seconds: float) -> tuple[Mask, float]:
        """Match each path; return a byte for each (1 for a match), and the processor seconds used.

        Args:
            pattern: A pattern already compiled by a backtracking engine.
            paths: A list, or an unsliced text column.
            seconds: Limit of processor time.

        Raises:
            TimeoutError: The time was up.
            WorkerFailedError: The process has ended.
        """
        answer = await self.ask(_job(pattern, paths, seconds))
        mask = answer[TOOK.size :]
        if len(mask) != len(paths):
            raise TimeoutError
        return mask, TOOK.unpack_from(answer)[0]


def _job(pattern: str, paths: Paths, seconds: float) -> bytes:
    if isinstance(paths, list):
        ends, names = offsets_of(map(len, paths)), b"".join(paths)
    else:
        _, offsets, data = paths.buffers()
        ends = array("i", offsets.to_pybytes()[: 4 * (len(paths) + 1)])
        names = data.to_pybytes()[: ends[-1]] if data is not None else b""
    return pack_job(seconds, pattern, len(paths), ends.tobytes(), names)


class PatternWorkers(WorkerProcesses[PatternWorker]):
    """A broker's pool of processes that match patterns: ``async with PatternWorkers()``."""

    def __init__(self, max_workers: int = MAX_WORKERS) -> None:
        # Isolated (-I): with PYTHONUNBUFFERED, an answer might be written incompletely.
        super().__init__((sys.executable, "-I", _SCRIPT), PatternWorker, max_workers)


LIMIT_NAMES = 100_000
"""Number of names for which one floodgatePatternTimeoutMs is allowed; longer listings get more. """
MOST_SECONDS = 20.0
"""Longest time limit for any number of names, unless the key is longer: a client waits for 30 s."""
PIECE_CLOCK_SECONDS, CLOCK_SECONDS = 20.0, 60.0
"""Wall-clock limits for a piece and for all pieces, unless the key is longer."""
_REMEDY = "write it without look-around and back-references, or raise floodgatePatternTimeoutMs"


class Piece(NamedTuple):
    """A part of a topic list to match, and the selection that collects its matching names."""

    selection: Selection
    run: PathRun


class BacktrackingFilter:
    """Filters topic lists, in worker processes, by patterns that need a backtracking engine.

    Args:
        workers: The processes.
        clock: Time source.
        seconds: floodgatePatternTimeoutMs: the processor time for a piece, and for LIMIT_NAMES
            names together.
    """

    def __init__(self, workers: PatternWorkers, clock: Clock, seconds: float) -> None:
        self._workers = workers
        self._clock = clock
        self._seconds = seconds

    async def keep(self, pattern: Backtracking, pieces: Iterator[Piece], count: int) -> None:
        """Match the names of all pieces, and add the matching names to the pieces' selections.

        Args:
            pattern: The pattern.
            pieces: The pieces, created lazily.
            count: Number of names in the listing, including names outside the pieces.

        Raises:
            InvalidPatternError: The pattern takes too long, or the process ended.
        """
        limit = _Limit(self._seconds, count)
        try:
            await self._take_turns(pattern, pieces, limit)
        except TimeoutError:
            refusal = InvalidPatternError(f"the pattern {pattern.text!r} {limit}: {_REMEDY}")
        except WorkerFailedError as error:
            refusal = InvalidPatternError(f"{error}; the pattern {pattern.text!r} was abandoned")
        else:
            return
        # Outside the handlers: a traceback would keep their frames' data until collection.
        raise refusal

    async def _take_turns(
        self, pattern: Backtracking, pieces: Iterator[Piece], limit: _Limit
    ) -> None:
        """Match all pieces in time slices, between which other evaluations use the process.

        The wait for each slice is limited to the time allowed for all the names.

        (With one limit for both, simultaneous waiters would start shortly before their time is up,
        and each would cost a process.)
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
        """Match pieces until none is left, or until a time slice ends and others wait.

        Return the next piece; None at the end.

        Raises:
            TimeoutError: A piece, or all pieces together, take too long.
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
    """The time limit for matching one topic list, and the error message when it is exceeded.

    Attributes:
        seconds: Processor time for all names.
        left: Remaining processor time.
        piece_clock_seconds: Wall-clock time for a piece.
        clock_left: Remaining wall-clock time for all pieces.
        names: Number of names in the current piece; 0 while waiting for a process.
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
        whole = self._key
        if self.seconds > self._seconds:
            whole = f"{self.seconds:g} s ({self._key} for each {LIMIT_NAMES} topics"
            whole += f", at most {MOST_SECONDS:g} s)" if self.seconds == MOST_SECONDS else ")"
        if not self.names:
            return f"got no process within {whole}, while other such patterns were evaluated"
        if self.left > self._seconds:
            return f"takes more than {self._key} on {self.names} of {self._count} topics"
        return f"takes more than {whole} on {self._count} topics"
