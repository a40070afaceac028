"""A scrape, written a few milliseconds at a time: a broker may have samples of many topics.

Bound: one is written at a time; others wait for it. How long it gets is bounded by those who
have the samples.
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

    Gather: TypeAlias = Callable[[], Generator[None, None, Iterable[TextFamily]]]
    """Collects families in steps."""

_LINES_A_STEP = 500


class Scrapes:
    """Writes what the collectors say.

    Args:
        registry: Collectors that answer at once.
        gather: Collects families in steps; None where there are none of these.
    """

    def __init__(self, registry: CollectorRegistry, gather: Gather | None = None) -> None:
        self._registry = registry
        self._gather = gather
        self._steps = Steps()
        self._one_at_a_time = asyncio.Lock()

    async def text(self, *, as_openmetrics: bool) -> list[bytes]:
        """Ask every collector and write what it says, in OpenMetrics or Prometheus' format.

        Returns:
            Blocks of lines: as one piece it may be so large that to copy it takes long.
        """
        async with self._one_at_a_time:
            families: Iterable[TextFamily] = ()
            if self._gather is not None:
                families = await self._steps.take(self._gather())
            found: Iterable[Metric | TextFamily] = chain(self._registry.collect(), families)
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
            family.lines.clear()  # All of them at the end would take long.
    if as_openmetrics:
        blocks.append(b"# EOF\n")
    return blocks
