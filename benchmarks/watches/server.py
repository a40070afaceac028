"""A broker that creates and deletes topics on command, and reports what that costs.

``python -m benchmarks.watches.server SETTINGS_JSON [IMPORT ...]`` takes commands; see
``controlled_process``. The broker is that of ``python -m broker``. Changes bypass REST, so that
only the cost of watchers is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command_lines import answer_commands
from benchmarks.lag_sampler import LagSampler
from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName
from server.connection.listener import raise_open_files_limit
from server.imports import Imports
from server.logs import LogFormat, LogLevel, configure_logs
from server.loop import run

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT_SECONDS = 60.0
"""Longest time until all watchers have received a change."""
_TURNS = 200
"""Turns of the loop within which an event usually ends; then the loop may sleep."""


class WatchServer:
    """The commands that the broker's process executes."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._lags = LagSampler()

    async def sample(self) -> dict[str, Any]:
        """Start sampling the lag of the event loop."""
        self._lags.start()
        return {}

    async def lags(self) -> dict[str, Any]:
        """Return the samples of lag since the last call."""
        return self._lags.take()

    async def figures(self) -> dict[str, Any]:
        """Return the processor time used so far, and the resources that watches use."""
        watches = self._broker.watches
        return {
            "cpu_seconds": time.process_time(),
            "watchers": watches.totals.watchers,
            "sets": watches.registry.sets,
            "held_bytes": watches.registry.held_bytes,
            "max_bytes": watches.registry.settings.max_bytes,
            "updates": watches.totals.updates,
            "reconciling": watches.totals.reconciling,
            "relistings": watches.totals.relistings,
            "refused": watches.totals.refused,
        }

    async def change(
        self, namespace: str, names: Sequence[str], came: bool, updates: int
    ) -> dict[str, Any]:
        """Create or delete topics one by one, each after all updates on the change before.

        Args:
            namespace: The namespace of the topics.
            names: The full names of the topics.
            came: Whether to create the topics; otherwise they are deleted.
            updates: Number of watchers that each change notifies.

        Raises:
            TimeoutError: Updates were not sent in time.
        """
        where = NamespaceName.parse(namespace)
        totals = self._broker.watches.totals
        began, cpu_seconds = time.perf_counter(), time.process_time()
        for name in names:
            one = (name.encode(),)
            wanted = totals.updates + updates
            await self._broker.store.apply(where, TopicChanges(*((one, ()) if came else ((), one))))
            await self._told(wanted)
        return {
            "cpu_seconds": time.process_time() - cpu_seconds,
            "seconds": time.perf_counter() - began,
        }

    async def _told(self, wanted: int) -> None:
        totals, turns = self._broker.watches.totals, 0
        give_up = time.monotonic() + EVENT_SECONDS
        while totals.updates < wanted:
            turns += 1
            await asyncio.sleep(0 if turns < _TURNS else 0.001)
            if time.monotonic() > give_up:
                raise TimeoutError(f"{wanted - totals.updates} updates are missing")


async def serve(settings: dict[str, str], imports: tuple[Path, ...]) -> None:
    """Run the broker, and answer commands until standard input ends."""
    async with BrokerService(BrokerConfig.from_properties(settings), Imports(imports)) as broker:
        server = WatchServer(broker)
        await answer_commands(
            {"service_url": broker.service_url, "web_url": broker.web_service_url},
            {
                "sample": server.sample,
                "lags": server.lags,
                "figures": server.figures,
                "change": server.change,
            },
        )


if __name__ == "__main__":
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE)
    raise_open_files_limit()
    run(serve(json.loads(sys.argv[1]), tuple(map(Path, sys.argv[2:]))))
