"""A change of the consumer of a hash range."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

C = TypeVar("C")


class MovedHashes(NamedTuple, Generic[C]):
    """A range of hashes with a new consumer; both ends are included.

    Attributes:
        first: The lowest hash.
        last: The highest hash.
        source: The previous consumer; None if free before.
        target: The new consumer; None if free now.
    """

    first: int
    last: int
    source: C | None
    target: C | None
