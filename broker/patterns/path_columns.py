"""Arrow columns of the topic paths that patterns match, cached for small namespaces.

Runs of neighbouring blocks are one column, processed by one kernel call.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.patterns.columns import (
    as_text,
    entry_column,
    name_column,
    paths_of,
    without_partitions,
)
from broker.patterns.plain_paths import PathRun
from broker.topic_lists.paths import common_domain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.patterns.cache import ListingCache
    from broker.topic_lists.block import Block, Mask
    from broker.topic_lists.sequence import Selection, TopicSequence

RUN_BLOCKS = 16
"""Blocks in a run, about 1 MB of names: concatenated in about 0.1 ms."""


def in_runs(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Split blocks of names into lists of RUN_BLOCKS each, without joining their bytes."""
    pending = iter(blocks)
    while some := list(islice(pending, RUN_BLOCKS)):
        yield some


class BlockRun:
    """Neighboring blocks of names, joined so that one call matches them all; never empty.

    Attributes:
        own_bytes: Memory of the run beside its blocks.
    """

    __slots__ = ("_starts", "_wire", "blocks", "offsets", "own_bytes")

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.own_bytes = 0
        if len(blocks) == 1:
            self._wire = blocks[0].wire
            self.offsets = np.frombuffer(blocks[0].offsets, np.int32)
            self._starts = [0, blocks[0].totals.count]
            return
        self._wire = b"".join([block.wire for block in blocks])
        self._starts = np.cumsum([0, *(block.totals.count for block in blocks)]).tolist()
        begins = np.cumsum([0, *(len(block.wire) for block in blocks[:-1])], dtype=np.int32)
        parts = [
            np.frombuffer(block.offsets, np.int32)[:-1] + begin
            for block, begin in zip(blocks, begins, strict=True)
        ]
        self.offsets = np.concatenate([*parts, np.array([len(self._wire)], np.int32)])
        self.own_bytes = len(self._wire) + self.offsets.nbytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def paths(self) -> pa.StringArray:
        """Return the paths that patterns match: names without domain and partition suffix."""
        skipped = len(common_domain(self.blocks[0].name_at(0), self.blocks[-1].name_at(-1)))
        names = as_text(name_column(self._wire, self.offsets, skipped))
        if not skipped:
            return paths_of(names)
        return without_partitions(names) if self.may_have_partitions else names

    @property
    def may_have_partitions(self) -> bool:
        """True if a name contains ``-partition-``.

        Paths then take ten times as long to build.
        """
        return any(block.may_have_partitions for block in self.blocks)

    def keep(self, selection: Selection, mask: Mask) -> None:
        """Add the names whose byte in ``mask`` is 1 to a selection; whole blocks are shared."""
        if 1 not in mask:
            return
        marks = np.frombuffer(mask, np.bool_)
        kept_whole = np.logical_and.reduceat(marks, self._starts[:-1])
        if not kept_whole.any():
            entries = entry_column(self._wire, self.offsets).filter(pa.array(marks))
            _, offsets, data = entries.buffers()
            ends = array("i", offsets.to_pybytes()[: 4 * (len(entries) + 1)])
            selection.keep_joined(data.to_pybytes()[: ends[-1]], ends)
            return
        for index, block in enumerate(self.blocks):
            selection.keep(block, mask[self._starts[index] : self._starts[index + 1]])


_LARGEST_PART = 8
"""Columns are cached for sequences up to an eighth of the cache: longer columns would evict all
other entries, and each other before reuse.
"""
_FEW_BLOCKS = 4
"""Number of blocks up to which concatenating is faster than searching all cached runs."""
_PATHS = "paths"


class PathColumns:
    """The paths of a sequence of topic names, as Arrow columns that are built on demand.

    Concatenating 1 MB of blocks takes 0.3 ms, and the result is cached for the sequence. Removing
    partitions takes 3 ms, and the result is cached for each block, as a change leaves most blocks.
    """

    def __init__(self, sequence: TopicSequence, cache: ListingCache) -> None:
        self._sequence = sequence
        self._cache = cache
        self._remembers = sequence.totals.wire_bytes * _LARGEST_PART <= cache.max_bytes

    def runs(self, low: bytes = b"", high: bytes | None = None) -> Iterator[PathRun]:
        """Yield runs of blocks that include all names with sort keys from ``low`` to ``high``.

        Args:
            low: A key of ``java_order``.
            high: A key of ``java_order``; None is the end.
        """
        blocks = self._sequence.blocks(low, high)
        if not self._remembers:
            return self._made_of(blocks)
        few = list(islice(blocks, _FEW_BLOCKS + 1))
        return self._made_of(few) if len(few) <= _FEW_BLOCKS else self._remembered()

    def _made_of(self, blocks: Iterable[Block]) -> Iterator[PathRun]:
        return (self._made(BlockRun(some)) for some in in_runs(blocks))

    def _remembered(self) -> Iterator[PathRun]:
        """Yield runs of all blocks of the sequence, each cached from its first use."""
        for index, blocks in enumerate(in_runs(self._sequence.blocks())):
            known = self._cache.get(self._sequence, index)
            if isinstance(known, PathRun):
                yield known
                continue
            run = BlockRun(blocks)
            made = self._made(run)
            paths: pa.StringArray = made.paths
            size_bytes = paths.get_total_buffer_size() + run.own_bytes
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
