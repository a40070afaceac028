"""The columns that patterns are matched against; those of short sequences are remembered."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from broker.topic_lists.block_run import BlockRun, block_runs, in_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.patterns.cache import ListingCache
    from broker.topic_lists.block import Block
    from broker.topic_lists.sequence import TopicSequence

_LARGEST_PART = 8
"""Columns are remembered if a sequence is an eighth of the cache at most: those of a longer one
would push out everything else, and each other before they are asked for again."""
_FEW_BLOCKS = 4
"""Blocks that are put together anew faster than all remembered runs are searched."""
_PATHS = "paths"


class PathRun(NamedTuple):
    """Some neighbouring blocks, with their paths as a column that is no slice."""

    run: BlockRun
    paths: pa.StringArray


class PathColumns:
    """The runs of one sequence, made when they are read.

    To put blocks together takes 0.3 ms for 1 MB, which is remembered for the sequence. To take
    partitions off takes 3 ms: that is remembered for each block, as a change leaves most of them.
    """

    def __init__(self, sequence: TopicSequence, cache: ListingCache) -> None:
        self._sequence = sequence
        self._cache = cache
        self._remembers = sequence.totals.wire_bytes * _LARGEST_PART <= cache.max_bytes

    def runs(self, low: bytes = b"", high: bytes | None = None) -> Iterator[PathRun]:
        """Yield runs of at least those blocks with names from ``low`` to ``high``.

        Args:
            low: A key of ``java_order``.
            high: Another; None is the end.
        """
        blocks = self._sequence.blocks(low, high)
        if not self._remembers:
            return map(self._made, block_runs(blocks))
        few = list(islice(blocks, _FEW_BLOCKS + 1))
        return map(self._made, block_runs(few)) if len(few) <= _FEW_BLOCKS else self._all_runs()

    def _all_runs(self) -> Iterator[PathRun]:
        for index, blocks in enumerate(in_runs(self._sequence.blocks())):
            known = self._cache.get(self._sequence, index) if self._remembers else None
            if isinstance(known, PathRun):
                yield known
                continue
            run = BlockRun(blocks)
            made = self._made(run)
            if self._remembers:
                size_bytes = made.paths.get_total_buffer_size() + run.own_bytes
                self._cache.put(self._sequence, index, made, size_bytes)
            yield made

    def _made(self, run: BlockRun) -> PathRun:
        if not self._remembers or not run.may_have_partitions:
            return PathRun(run, run.paths())
        columns = [self._of_block(block) for block in run.blocks]
        return PathRun(run, columns[0] if len(columns) == 1 else pa.concat_arrays(columns))

    def _of_block(self, block: Block) -> pa.StringArray:
        known = self._cache.get(block, _PATHS)
        if isinstance(known, pa.Array):
            return known
        column = BlockRun([block]).paths()
        self._cache.put(block, _PATHS, column, column.get_total_buffer_size())
        return column
