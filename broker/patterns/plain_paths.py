"""Topic paths to match one by one, as Python lists; used if Arrow is not installed."""

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
    """An interface of one or more neighboring blocks of names."""

    def __len__(self) -> int: ...

    def keep(self, selection: Selection, mask: Mask) -> None:
        """Add the names whose byte in ``mask`` is 1 to a selection; whole blocks are shared."""


class PathRun(NamedTuple):
    """One or more neighboring blocks of names, with the path of each name that patterns match."""

    run: Run
    paths: Paths


class OneBlock:
    """A run that consists of a single block of names."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __len__(self) -> int:
        return self._block.totals.count

    def keep(self, selection: Selection, mask: Mask) -> None:
        """Add the names of the block whose byte in ``mask`` is 1 to a selection."""
        selection.keep(self._block, mask)


class PlainPaths:
    """The paths of a sequence of topic names, as Python lists.

    Replaces PathColumns if Arrow is not installed.
    """

    def __init__(self, sequence: TopicSequence, _: Any = None) -> None:  # noqa: ANN401 - no cache
        self._sequence = sequence

    def runs(self, low: bytes = b"", high: bytes | None = None) -> Iterator[PathRun]:
        """Yield the blocks that have any names with sort keys from ``low`` to ``high``.

        See PathColumns.
        """
        for block in self._sequence.blocks(low, high):
            yield PathRun(OneBlock(block), list(map(path_of, block.names())))
