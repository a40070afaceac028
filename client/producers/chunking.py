"""Parts of a message that is larger than the broker takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Chunks:
    """One message's parts, cut off one at a time: what was cut off is in a frame already.

    Attributes:
        body: The payload, compressed if it is to be.
        chunk_bytes: Bytes of each part but the last.
        uuid: Names the message in the metadata of its parts.
        sent: How many parts were cut off.
        answered: How many the broker has answered for.
        first: Ledger and entry of the first part, once it is known.
    """

    body: bytes
    chunk_bytes: int
    uuid: str
    sent: int = 0
    answered: int = 0
    first: tuple[int, int] | None = None
    total_bytes: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        self.total_bytes = len(self.body)
        self.count = -(-self.total_bytes // self.chunk_bytes)

    @property
    def all_sent(self) -> bool:
        """True if no part is left to be cut off."""
        return self.sent == self.count

    @property
    def all_answered(self) -> bool:
        """True if the broker has every part."""
        return self.answered == self.count

    def next_part(self) -> bytes:
        """Return the next part."""
        start = self.sent * self.chunk_bytes
        part = self.body[start : start + self.chunk_bytes]
        self.sent += 1
        if self.all_sent:
            self.body = b""  # The parts in the frames are all that is needed now.
        return part
