"""Many objects let go of, beside the event loop: a million names hold it for 50 ms."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FREED_AT_ONCE = 10_000
"""Objects that go in a step, which takes half a millisecond."""


async def free(values: Sequence[object]) -> None:
    """Empty a long list that nobody needs any more, step by step in a thread; leave any other."""
    if isinstance(values, list) and len(values) > FREED_AT_ONCE:
        await asyncio.to_thread(free_in_steps, values)


def free_in_steps(values: list[Any]) -> None:
    """Empty a list, so that other threads have their turn between steps."""
    while values:
        del values[-FREED_AT_ONCE:]
