"""Answers in bytes of their own: a large one is copied in a thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proto.topics_response import TopicsResponse

JOINED_AT_ONCE_BYTES = 4 * 1024 * 1024
"""Largest answer that is copied on the event loop, in some 2 ms; others can run beside the rest."""


async def joined(response: TopicsResponse) -> TopicsResponse:
    """Return a response in one private buffer."""
    if response.size <= JOINED_AT_ONCE_BYTES:
        return response.joined()
    return await asyncio.to_thread(response.joined)
