"""Plays a dialogue to an in-process broker, whose time passes only between steps.

With Failover consumers the frames depend on step durations: each step takes its recorded time,
however slow the machine.
"""

from __future__ import annotations

import asyncio

from broker.service import BrokerService
from proto import PulsarApi_pb2 as pb
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.dialogues import wire
from tests.support.dialogues.dialogue import Dialogue, Step
from tests.support.dialogues.player import PACE_SECONDS, Patience, Played, Player
from tests.support.golden.exchange import Rest
from tests.support.golden.rest import ask
from tests.support.golden.targets import BROKER_AS_RECORDED
from tests.support.processes.cluster import broker_config, no_errors_logged

MOST_PACES = 2
"""Paces of a slow step: reopening a connection took longer than other recorded steps."""
_PING = wire.command_bytes({"command": "PING"}, {})


async def play_standing(dialogue: Dialogue) -> Played:
    """Play every step up to the first disagreement, at an otherwise unused broker."""
    clock = ManualClock()
    with no_errors_logged():
        async with BrokerService(broker_config(BROKER_AS_RECORDED), clock=clock) as broker:
            path = f"/lookup/v2/topic/{dialogue.topic.replace('://', '/')}"
            web = broker.web_service_url.removeprefix("http://")
            await asyncio.to_thread(ask, web, Rest("GET", path, None, 200))
            player = _StandingPlayer(dialogue, broker.service_url.removeprefix("pulsar://"), clock)
            try:
                return await player.run()
            finally:
                player.close()


class _StandingPlayer(Player):
    """A player that moves the broker's clock and checks that the broker read everything."""

    def __init__(self, dialogue: Dialogue, address: str, clock: ManualClock) -> None:
        super().__init__(dialogue, address, Patience(), expecting=True, admin=None)
        self._clock = clock
        self._pings = [0, 0]
        self._heard = asyncio.Event()

    async def _take(self, step: Step) -> None:
        self._pings[step.connection] = int(step.command == "PING")
        await super()._take(step)

    async def _rest(self, step: Step, end: float) -> None:
        del end
        await self._all_heard()
        for _ in range(MOST_PACES):
            self._clock.advance(PACE_SECONDS)
            await self._all_heard()
            if self._has_come(step.then):
                return

    async def _all_heard(self) -> None:
        """Return when the broker has handled and answered all sent commands."""
        for _ in range(2):
            for connection in self._connections:
                self._heard.clear()
                connection.send(_PING)
                if connection.is_open:
                    await self._heard.wait()
            await settle()

    def _receive(self, number: int, command: pb.BaseCommand | None, behind: bytes) -> None:
        if command is None:
            self._heard.set()
        elif command.type == pb.BaseCommand.PONG:
            if not self._pings[number]:
                self._heard.set()
                return
            self._pings[number] -= 1
        super()._receive(number, command, behind)
