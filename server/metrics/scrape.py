"""A scrape, written in steps of a few milliseconds: a broker may have samples of many topics.

Bound: a single scrape is written at a time; further scrapes wait. Its length is bounded by the
collectors.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import TYPE_CHECKING

from server.metrics.exposition import TextFamily, openmetrics_lines, prometheus_lines
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import TypeAlias

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    Gather: TypeAlias = Callable[[], Generator[None, None, Iterable[Metric | TextFamily]]]
    """Collects families in steps."""

_LINES_A_STEP = 500


class Scrapes:
    """Writes the metrics of the collectors.

    Args:
        registry: Collectors that return immediately.
        gather: Collects families in steps; None without such collectors.
    """

    def __init__(self, registry: CollectorRegistry, gather: Gather | None = None) -> None:
        self._registry = registry
        self._gather = gather
        self._steps = Steps()
        self._one_at_a_time = asyncio.Lock()

    async def text(self, *, as_openmetrics: bool) -> list[bytes]:
        """Collect all metrics and return them in OpenMetrics or Prometheus' format.

        Returns:
            Blocks of lines, since copying a single large text would block the event loop.
        """
        async with self._one_at_a_time:
            families: Iterable[Metric | TextFamily] = ()
            if self._gather is not None:
                families = await self._steps.take(self._gather())
            found = chain(self._registry.collect(), families)
            return await self._steps.take(_written(found, as_openmetrics=as_openmetrics))


def _written(
    families: Iterable[Metric | TextFamily], *, as_openmetrics: bool
) -> Generator[None, None, list[bytes]]:
    lines_of = openmetrics_lines if as_openmetrics else prometheus_lines
    blocks = []
    for family in families:
        lines = iter(lines_of(family))
        while block := list(islice(lines, _LINES_A_STEP)):
            blocks.append("\n".join((*block, "")).encode())
            yield
        if isinstance(family, TextFamily):
            family.lines.clear()  # Freeing all of them at the end would block the event loop.
    if as_openmetrics:
        blocks.append(b"# EOF\n")
    return blocks
