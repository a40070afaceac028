"""Recorded dialogues of producers and consumers, replayed.

Dialogues whose frames depend on the time between steps (with Failover consumers) run against a
broker in this process, on the player's clock: each step takes its recorded time, however slow the
machine. Other dialogues run against a broker process, concurrently.

Another broker may be the target: see ``golden_targets``. Topics of an earlier replay are deleted
there first; the broker must keep unused topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from broker.service import BrokerService
from proto import PulsarApi_pb2 as pb
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.dialogues import wire
from tests.support.dialogues.comparison import Disagreement, disagreement
from tests.support.dialogues.dialogue import Dialogue, Step, load_dialogues
from tests.support.dialogues.player import PACE_SECONDS, Patience, Played, Player, play
from tests.support.golden.exchange import Rest, load_deviations
from tests.support.golden.rest import ask
from tests.support.golden.targets import (
    BROKER_AS_RECORDED,
    FOREIGN_BROKER,
    golden_broker,
    look_up,
)
from tests.support.processes.cluster import broker_config, no_errors_logged

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
DIALOGUES = load_dialogues(RECORDED / "dialogues.jsonl")
STANDING = {one.name: one for one in DIALOGUES if one.keeps_time and not FOREIGN_BROKER}
SIDE_BY_SIDE = [one for one in DIALOGUES if one.name not in STANDING]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")
PLACES = 80
PLAYS = 3
"""Attempts at a timed dialogue: a busy machine may be late for its second."""
MOST_PACES = 2
"""Paces of a slow step: reopening a connection took longer than other recorded steps."""
_PING = wire.command_bytes({"command": "PING"}, {})


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Disagreement]:
    """Return the first difference of each dialogue, by name."""
    with golden_broker(tmp_path_factory.mktemp("golden-dialogues")) as broker:
        if not broker.web:
            pytest.skip("FLOODGATE_GOLDEN_WEB names no web port to replay this against.")

        async def forget(topic: str) -> None:
            path = f"/admin/v2/{topic.replace('://', '/')}?force=true"
            await asyncio.to_thread(ask, broker.web, Rest("DELETE", path, None, 204))

        async def play_all() -> list[Disagreement]:
            if FOREIGN_BROKER:
                for dialogue in SIDE_BY_SIDE:
                    await forget(dialogue.topic)
            return await disagreements(SIDE_BY_SIDE, broker.address, forget)

        look_up(broker, "public/default")
        return {one.dialogue: one for one in asyncio.run(play_all())}


def test_every_dialogue_step_is_answered_as_recorded(found: dict[str, Disagreement]) -> None:
    complaints = [complaint(one.name, found.get(one.name)) for one in SIDE_BY_SIDE]
    assert not "\n".join(filter(None, complaints))


@pytest.mark.parametrize("name", STANDING)
async def test_every_timed_dialogue_is_answered_as_recorded(name: str) -> None:
    played = await play_standing(STANDING[name])
    assert not complaint(name, disagreement(STANDING[name], played))


def complaint(name: str, disagreement: Disagreement | None) -> str:
    """Return what is wrong with a dialogue's play; empty when all is intended."""
    deviation = None if FOREIGN_BROKER else DEVIATIONS.get((name, "broker"))
    if disagreement is None:
        return f"{name} agrees: take it off the deviations" if deviation else ""
    admitted = deviation is not None and deviation.fields == {f"step {disagreement.index}"}
    return "" if admitted else f"{name}: {disagreement}"


def test_the_whole_recording_is_replayed() -> None:
    assert len({dialogue.name for dialogue in DIALOGUES}) == len(DIALOGUES) == 239


def test_every_deviation_names_a_recorded_dialogue() -> None:
    named = {name for name, _ in DEVIATIONS if name.startswith("dialogues/")}
    assert not named - {dialogue.name for dialogue in DIALOGUES}


async def disagreements(
    dialogues: Sequence[Dialogue], address: str, forget: Callable[[str], Awaitable[None]]
) -> list[Disagreement]:
    """Play dialogues to ``host:port`` and return each one's first disagreement.

    Args:
        dialogues: With expected frames.
        address: The server's.
        forget: Deletes a topic, by full name, before a repeat.
    """
    places = asyncio.Semaphore(PLACES)

    async def one(dialogue: Dialogue) -> Disagreement | None:
        async with places:
            found = None
            for number in range(PLAYS if dialogue.keeps_time else 1):
                if number:
                    await forget(dialogue.topic)
                found = disagreement(dialogue, await play(dialogue, address, Patience()))
                if found is None:
                    break
            return found

    found = await asyncio.gather(*map(one, dialogues))
    return [each for each in found if each is not None]


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
