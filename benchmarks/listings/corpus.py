"""The namespace that listing benchmarks use: as names, as a file and as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.listing.responses import topics_response
from broker.topic_lists.sequence import TopicListing, TopicSequence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAMESPACE = "bench/listings"
NAMES = 10_000
NAME_BYTES = 100
REQUEST_ID = 1


def listing_names(count: int = NAMES) -> list[str]:
    """Return full topic names with a length of NAME_BYTES bytes."""
    prefix = f"persistent://{NAMESPACE}/"
    width = NAME_BYTES - len(prefix)
    return [f"{prefix}{index:0{width}d}" for index in range(count)]


def answer_of(names: Iterable[str], *, filtered: bool = False) -> bytes:
    """Return the bytes of the complete answer to a listing of some names."""
    listing = TopicListing(TopicSequence.from_names([name.encode() for name in names]))
    response = topics_response(REQUEST_ID, listing, listing.hash, filtered=filtered, changed=True)
    return b"".join(response.buffers)


def write_text_file(path: Path, count: int = NAMES) -> None:
    """Write these names to a file for import, one name per line."""
    path.write_text("".join(f"{name}\n" for name in listing_names(count)))
