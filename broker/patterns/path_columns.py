"""The columns of paths for matching; columns of short sequences are cached."""

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
"""Columns are cached for sequences up to an eighth of the cache: longer columns would evict all
other entries, and each other before reuse.
"""
_FEW_BLOCKS = 4
"""Up to this number, concatenating blocks is faster than searching all cached runs."""
_PATHS = "paths"


class PathRun(NamedTuple):
    """Some neighbouring blocks, with their paths as an unsliced column."""

    run: BlockRun
    paths: pa.StringArray


class PathColumns:
    """The runs of one sequence, built on demand.

    Concatenating 1 MB of blocks takes 0.3 ms, and the result is cached for the sequence. Removing
    partitions takes 3 ms, and the result is cached for each block, as a change leaves most blocks.
    """

    def __init__(self, sequence: TopicSequence, cache: ListingCache) -> None:
        self._sequence = sequence
        self._cache = cache
        self._remembers = sequence.totals.wire_bytes * _LARGEST_PART <= cache.max_bytes

    def runs(self, low: bytes = b"", high: bytes | None = None) -> Iterator[PathRun]:
        """Yield runs with at least the blocks holding names from ``low`` to ``high``.

        Args:
            low: A key of ``java_order``.
            high: A key of ``java_order``; None is the end.
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
