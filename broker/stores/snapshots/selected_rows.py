"""Names of selected rows of a sequence, in steps, without looking at the other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from broker.topic_lists.block import offsets_of
from broker.topic_lists.sequence import Selection, TopicSequence
from broker.topic_lists.tree import cut_entries

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from broker.topic_lists.block import Block, Rows

ROWS_PER_STEP = 512
"""Names picked one by one (about 1 us each) in a step."""
_FEW_OF_A_BLOCK = 32
"""Most names of a block that are picked one by one; more are taken at once, in 0.3 ms."""


def names_at_rows(names: TopicSequence, rows: Rows) -> Generator[None, None, TopicSequence]:
    """Return the names of some rows, in steps; all of them are the very same sequence.

    Args:
        names: Where the rows are.
        rows: Distinct rows in ascending order.
    """
    if len(rows) == len(names):
        return names
    blocks = list(names.blocks())
    if len(rows) <= len(blocks) * _FEW_OF_A_BLOCK:
        return (yield from _picked(blocks, rows))
    selection = Selection(names)
    for block, chosen in names.blocks_of_rows(rows):
        selection.keep_rows(block, chosen)
        yield
    return selection.sequence()


def _picked(blocks: Sequence[Block], rows: Rows) -> Generator[None, None, TopicSequence]:
    ends = np.cumsum([block.totals.count for block in blocks])
    places = np.searchsorted(ends, rows, side="right")
    starts = np.concatenate(([0], ends[:-1]))[places] if len(rows) else rows
    entries: list[bytes] = []
    for start in range(0, len(rows), ROWS_PER_STEP):
        part = slice(start, start + ROWS_PER_STEP)
        entries.extend(_entries(blocks, places[part], rows[part] - starts[part]))
        yield
    sizes = np.fromiter(map(len, entries), np.int32, len(entries))
    return TopicSequence.from_blocks(cut_entries(b"".join(entries), offsets_of(sizes)))


def _entries(blocks: Sequence[Block], places: Rows, indexes: Rows) -> Iterator[bytes]:
    for place, index in zip(places.tolist(), indexes.tolist(), strict=True):
        block = blocks[place]
        yield block.wire[block.offsets[index] : block.offsets[index + 1]]
