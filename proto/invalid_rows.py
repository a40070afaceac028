"""Report on the invalid rows of a topic file: counts them all and describes the first ones."""

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
    """Number of a topic file's invalid rows, with descriptions of the first ones.

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
        """Count more invalid rows; ``told`` has a sentence for each of the first rows."""
        self.count += count
        self._told += list(told)[: MAX_TOLD_ROWS - len(self._told)]

    def include(self, other: InvalidRows) -> None:
        """Add the invalid rows counted in a later part of the same file."""
        self.rows += other.rows
        self.add(other.count, other._told)

    def __str__(self) -> str:
        lines = [f"{self._path}: {self.count:,} of {self.rows:,} topics are invalid", *self._told]
        if self.count > len(self._told):
            lines.append(f"and {self.count - len(self._told):,} more")
        return "\n  ".join(lines)

    @property
    def refusal(self) -> str:
        """The error message for a file that is rejected because of its invalid rows."""
        return (
            f"{self}\nnothing was imported: correct the file, "
            "or skip invalid topics with --skip-invalid"
        )


def shown(text: str | bytes) -> str:
    """Return a text quoted for an error message, cut to 80 characters."""
    excerpt = repr(text[:_SHOWN_CHARACTERS])
    return excerpt if len(text) <= _SHOWN_CHARACTERS else f"{excerpt}..."
