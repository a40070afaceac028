"""Invalid rows of a file of topics: all counted, the first described with their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_TOLD_ROWS = 20
"""Invalid rows described in a report; the rest are counted."""
_SHOWN_CHARACTERS = 80
EXPECTED_NAME = "expected persistent://tenant/namespace/topic"


class InvalidRows:
    """The invalid rows of a file.

    Bound: MAX_TOLD_ROWS sentences.

    Attributes:
        rows: Topics read so far, including invalid topics.
        count: Number of invalid topics.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: list[str] = []
        self.rows = 0
        self.count = 0

    def add(self, count: int, told: Iterable[str]) -> None:
        """Count invalid rows; ``told`` are sentences for the first rows, in order."""
        self.count += count
        self._told += list(told)[: MAX_TOLD_ROWS - len(self._told)]

    def include(self, other: InvalidRows) -> None:
        """Add the invalid rows of a later part of the file."""
        self.rows += other.rows
        self.add(other.count, other._told)

    def __str__(self) -> str:
        lines = [f"{self._path}: {self.count:,} of {self.rows:,} topics are invalid", *self._told]
        if self.count > len(self._told):
            lines.append(f"and {self.count - len(self._told):,} more")
        return "\n  ".join(lines)

    @property
    def refusal(self) -> str:
        """The error text for a file with invalid rows, of which no row was imported."""
        return (
            f"{self}\nnothing was imported: correct the file, "
            "or skip invalid topics with --skip-invalid"
        )


def shown(text: str | bytes) -> str:
    """Return a text for an error sentence, cut short."""
    excerpt = repr(text[:_SHOWN_CHARACTERS])
    return excerpt if len(text) <= _SHOWN_CHARACTERS else f"{excerpt}..."
