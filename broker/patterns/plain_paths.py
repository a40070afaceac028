"""The paths of names for matching one by one, without Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker.topic_lists.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    import pyarrow as pa

    from broker.topic_lists.block import Block, Mask
    from broker.topic_lists.sequence import Selection, TopicSequence

    Paths: TypeAlias = list[bytes] | pa.StringArray


class Run(Protocol):
    """Some neighbouring blocks; never empty."""

    def __len__(self) -> int: ...

    def keep(self, selection: Selection, mask: Mask) -> None:
        """Keep the names where ``mask`` is true; wholly kept blocks stay shared."""


class PathRun(NamedTuple):
    """Some neighbouring blocks, with their paths as a list or as an unsliced column."""

    run: Run
    paths: Paths


class OneBlock:
    """A run of one block."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __len__(self) -> int:
        return self._block.totals.count

    def keep(self, selection: Selection, mask: Mask) -> None:
        """See Run."""
        selection.keep(self._block, mask)


class PlainPaths:
    """The runs of one sequence, as PathColumns has them."""

    def __init__(self, sequence: TopicSequence, _: Any = None) -> None:  # noqa: ANN401 - no cache
        self._sequence = sequence

    def runs(self, low: bytes = b"", high: bytes | None = None) -> Iterator[PathRun]:
        """See PathColumns."""
        for block in self._sequence.blocks(low, high):
            yield PathRun(OneBlock(block), list(map(path_of, block.names())))
