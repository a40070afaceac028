"""Freeing of many objects outside of the event loop: a million names would block it for 50 ms."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FREED_AT_ONCE = 10_000
"""Objects freed in a step, which takes half a millisecond."""


async def free(values: Sequence[object]) -> None:
    """Empty a long, unused list step by step in a thread; leave any other sequence."""
    if isinstance(values, list) and len(values) > FREED_AT_ONCE:
        await asyncio.to_thread(free_in_steps, values)


def free_in_steps(values: list[Any]) -> None:
    """Empty a list, yielding to other threads between steps."""
    while values:
        del values[-FREED_AT_ONCE:]
