"""Sorting of many names in a thread, without blocking other threads for long."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

NAMES_AT_ONCE = 16_384
"""Names sorted, joined or searched in one step of some milliseconds."""


def sorted_in_runs(names: Sequence[T]) -> list[T]:
    """Return names in text order; other threads can run between runs."""
    if len(names) <= NAMES_AT_ONCE:
        return sorted(names, key=str)
    starts = range(0, len(names), NAMES_AT_ONCE)
    runs = [sorted(names[at : at + NAMES_AT_ONCE], key=str) for at in starts]
    return list(merge(*runs, key=str))
