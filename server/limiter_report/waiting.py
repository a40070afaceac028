"""Requests waiting for memory, by namespace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock
    from limiter.semaphore.async_semaphore import AsyncSemaphore

WAITERS_A_TURN = 1000
"""Requests counted in a turn: well below a millisecond."""


@dataclass(slots=True)
class NamespaceWaiters:
    """The requests of a namespace waiting for a budget.

    Attributes:
        namespace: ``tenant/namespace``; empty if the requests named none.
        requests: Number of the requests.
        lacking_bytes: Sum of their lacked bytes.
        oldest_seconds: Age of the oldest.
    """

    namespace: str
    requests: int = 0
    lacking_bytes: int = 0
    oldest_seconds: float = 0.0


async def waiting_by_namespace(
    semaphore: AsyncSemaphore, clock: Clock
) -> Sequence[NamespaceWaiters]:
    """Count waiting requests, in several turns; the longest waiting namespace is first."""
    found: dict[str, NamespaceWaiters] = {}
    for number, waiter in enumerate(list(semaphore.waiters()), 1):
        if not waiter.done:
            line = found.setdefault(waiter.namespace, NamespaceWaiters(waiter.namespace))
            line.requests += 1
            line.lacking_bytes += waiter.needed
            waited = clock.now() - waiter.enqueued_at
            line.oldest_seconds = max(line.oldest_seconds, waited)
        if number % WAITERS_A_TURN == 0:
            await asyncio.sleep(0)
    return sorted(found.values(), key=attrgetter("oldest_seconds"), reverse=True)
