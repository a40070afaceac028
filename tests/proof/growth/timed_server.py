"""A broker or a proxy with timed turns: ``python -m tests.proof.growth.timed_server ROLE``.

See ``benchmarks.controlled_process``. The same server as ``python -m broker``, on asyncio's pure
loop, whose turns can be timed.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks.command_lines import answer_commands
from benchmarks.process_memory import peak_resident_bytes, reset_peak, resident_bytes
from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.postgresql import store as postgresql_store
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from server.connection.listener import raise_open_files_limit
from server.imports import Imports
from server.logs import LogFormat, LogLevel, configure_logs
from server.loop import COLLECT_AFTER
from tests.proof.growth.turns import TimedTurns, timed_turns

LOADED_BEFORE = (postgresql_store,)
"""Otherwise imported by a store's URL: a long turn before clients are served."""


class TimedServer:
    def __init__(self, role: str, exits: AsyncExitStack, turns: TimedTurns) -> None:
        self._role = role
        self._exits = exits
        self._turns = turns

    async def start(self, settings: Mapping[str, str], imports: Sequence[str]) -> dict[str, Any]:
        """Start; return the addresses when clients are served."""
        server = (
            BrokerService(
                BrokerConfig.from_properties(settings), Imports(tuple(map(Path, imports)))
            )
            if self._role == "broker"
            else ProxyService(ProxyConfig.from_properties(settings))
        )
        await self._exits.enter_async_context(server)
        return {"service_url": server.service_url, "web_url": server.web_service_url}

    async def take(self) -> dict[str, Any]:
        """Return the longest turns and the memory since the last take."""
        turn, own = self._turns.take()
        pid = os.getpid()
        found = {
            "millis": own.own_millis,
            "explained": str(own),
            "collector_millis": turn.collector_millis,
            "resident_bytes": resident_bytes(pid),
            "peak_bytes": peak_resident_bytes(pid),
        }
        reset_peak(pid)
        return found


async def serve(role: str) -> None:
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    with timed_turns() as turns:
        async with AsyncExitStack() as exits:
            server = TimedServer(role, exits, turns)
            await answer_commands({}, {"start": server.start, "take": server.take})


if __name__ == "__main__":
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE)
    raise_open_files_limit()
    asyncio.run(serve(sys.argv[1]))
