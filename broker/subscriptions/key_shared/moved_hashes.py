"""A change of who gets which hashes."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

C = TypeVar("C")


class MovedHashes(NamedTuple, Generic[C]):
    """A range of hashes that has another consumer than before; both ends are in.

    Attributes:
        first: The lowest hash.
        last: The highest.
        source: Their consumer before; None if they had none.
        target: Their consumer now; None if they have none.
    """

    first: int
    last: int
    source: C | None
    target: C | None
