"""Body of a forwarded HTTP request, whose beginning is stored so that it can be sent again.

A broker may redirect the request to another broker, which needs the body, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import StreamReader

MAX_REPLAY_BYTES_OF_ALL = 64 * 1024 * 1024
"""Bytes kept for all requests together; beyond, bodies are forwarded without keeping."""


@dataclass(slots=True)
class ReplayBudget:
    """Number of bytes of request bodies in memory, and its limits for one and for all requests.

    Attributes:
        max_bytes_of_one: httpInputMaxReplayBufferSize.
        max_bytes: Limit for all requests together.
        held_bytes: Bytes kept now.
    """

    max_bytes_of_one: int
    max_bytes: int = MAX_REPLAY_BYTES_OF_ALL
    held_bytes: int = 0


class RequestBody:
    """Body of one forwarded HTTP request, whose beginning is stored.

    Args:
        content: The body as received from the client; None for a request without a body.
        budget: The limits on stored bytes.
    """

    def __init__(self, content: StreamReader | None, budget: ReplayBudget) -> None:
        self._content = content
        self._budget = budget
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._whole = content is None
        self._sent = False

    @property
    def can_be_sent(self) -> bool:
        """True if the body can be sent (again): it is stored completely, or was not sent yet."""
        return self._whole or not self._sent

    async def read_beginning(self) -> None:
        """Read the body from the client and store it, up to the limit of stored bytes."""
        while not self._whole and self._has_room() and self._content is not None:
            chunk = await self._content.readany()
            self._whole = not chunk
            self._kept.append(chunk)
            self._kept_bytes += len(chunk)
            self._budget.held_bytes += len(chunk)

    def _has_room(self) -> bool:
        budget = self._budget
        return self._kept_bytes < budget.max_bytes_of_one and budget.held_bytes < budget.max_bytes

    def data(self) -> bytes | AsyncIterator[bytes] | None:
        """Return the body to send to the broker, as bytes or a stream; None if there is no body."""
        self._sent = True
        if self._content is None:
            return None
        return b"".join(self._kept) if self._whole else self._streamed(self._content)

    async def _streamed(self, content: StreamReader) -> AsyncIterator[bytes]:
        for chunk in self._kept:
            yield chunk
        self.release()
        async for chunk in content.iter_any():
            yield chunk

    def release(self) -> None:
        """Drop the stored bytes of the body; may be called repeatedly."""
        self._budget.held_bytes -= self._kept_bytes
        self._kept_bytes = 0
        self._kept.clear()
