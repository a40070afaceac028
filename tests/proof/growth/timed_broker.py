"""A broker whose turns are timed by the clock, without its thread's wait for a processor.

``python -m tests.proof.growth.timed_broker KEY=VALUE ...``; see ``benchmarks.controlled_process``.
Processor time alone would hide a turn's wait for a disk.
"""

import asyncio
import os
import sys
import time
from typing import Any

from benchmarks.command_lines import answer_commands
from benchmarks.process_memory import peak_resident_bytes, reset_peak
from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from server.logs import LogFormat, LogLevel, configure_logs
from tests.proof.servers import LOCAL

_LONG_MILLIS = 5.0


class HeldTurns:
    """The longest turn since the last take. Mutable: the turn, and the number of long turns."""

    def __init__(self) -> None:
        self._waits = os.open(f"/proc/self/task/{os.getpid()}/schedstat", os.O_RDONLY)
        self._run = asyncio.Handle._run
        self._longest, self._what, self._long = 0.0, "", 0

    def begin(self) -> None:
        """Time every callback from now on."""
        asyncio.Handle._run = lambda handle: self._time(handle)  # type: ignore[method-assign]

    def take(self) -> dict[str, Any]:
        """Return the longest turn, its callback, and the number of long turns; reset them."""
        found = {"millis": self._longest, "what": self._what, "long": self._long}
        self._longest, self._what, self._long = 0.0, "", 0
        return found

    def _waited_millis(self) -> float:
        return int(os.pread(self._waits, 100, 0).split()[1]) / 1e6

    def _time(self, handle: asyncio.Handle) -> None:
        what, waited, began = handle._callback, self._waited_millis(), time.perf_counter()
        self._run(handle)
        millis = 1_000 * (time.perf_counter() - began)
        if millis > _LONG_MILLIS:
            millis -= self._waited_millis() - waited
            self._long += millis > _LONG_MILLIS
            if millis > self._longest:
                self._longest, self._what = millis, repr(what)[:300]


async def serve(settings: dict[str, str]) -> None:
    config = BrokerConfig.from_properties({**LOCAL, "brokerServicePort": "0", **settings})
    turns, pid = HeldTurns(), os.getpid()

    async def turn() -> dict[str, Any]:
        return turns.take()

    async def peak() -> dict[str, Any]:
        found = {"bytes": peak_resident_bytes(pid)}
        reset_peak(pid)
        return found

    async with BrokerService(config) as broker:
        turns.begin()
        ready = {"url": broker.service_url, "web": broker.web_service_url}
        await answer_commands(ready, {"turn": turn, "peak": peak})


if __name__ == "__main__":
    configure_logs(LogLevel.INFO, LogFormat.CONSOLE)
    asyncio.run(serve(dict(one.split("=", 1) for one in sys.argv[1:])))
