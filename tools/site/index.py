"""Read the order of the site's pages from docs/README.md, the only place that declares it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Entry:
    """A link to a page in the navigation of the site.

    Attributes:
        title: The text of the link, beginning with a capital.
        target: The path relative to docs/, optionally with ``#heading``.
    """

    title: str
    target: str


@dataclass(frozen=True)
class Part:
    """A heading of the index with its pages, or in it a group of pages below a colon."""

    title: str
    children: tuple[Entry | Part, ...]


def parts(text: str) -> list[Part]:
    """Return the parts of the index in order, one for each kind of reader."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return [Part(section.partition("\n")[0], tuple(_children(section))) for section in sections]


def _children(section: str) -> Iterator[Entry | Part]:
    group = ""
    for block in section.split("\n\n")[1:]:
        if block.startswith("- "):
            entries = tuple(
                Entry(text[0].upper() + text[1:], to) for text, to in _LINK.findall(block)
            )
            if group:
                yield Part(group, entries)
            else:
                yield from entries
            group = ""
        else:
            group = block.strip().removesuffix(":")
