"""Run of dialogues: to a real broker twice, then to Floodgate, many concurrently."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.differential.dialogues.generating import PARTITION
from tests.differential.player import Side
from tests.differential.sides import floodgate_side, real_side
from tests.support.dialogues.comparison import Disagreement, agree, disagreement
from tests.support.dialogues.dialogue import Dialogue
from tests.support.dialogues.player import Patience, Played, play
from tests.support.golden.exchange import Rest
from tests.support.golden.rest import ask
from tests.support.golden.targets import look_up_at

SIDE_BY_SIDE = 64
AGAIN_SIDE_BY_SIDE = 8
PLAYS = 3
"""Plays of a differing dialogue: a server may have been slow."""
PARTITIONS = "3"
_PATIENCE = Patience(quiet=0.3)
_MORE_PATIENCE = Patience(quiet=1.0, answer=10.0)


@dataclass(frozen=True)
class Outcome:
    """Played dialogue.

    Attributes:
        dialogue: Includes the real broker's answers.
        kept: Whether the real broker repeated its answers.
        found: Floodgate's first difference; None without differences.
    """

    dialogue: Dialogue
    kept: bool
    found: Disagreement | None = None


@contextmanager
def open_run(label: str) -> Iterator[DialogueRun | None]:
    """Start Floodgate; None without a real broker."""
    real = real_side(label, through_proxy=False)
    if real is None:
        yield None
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        floodgate_side(label, Path(folder), through_proxy=False) as ours,
    ):
        for side in (real, ours):
            look_up_at(side.web, "public/default")
        yield DialogueRun(real, ours)


class DialogueRun:
    """Real broker and Floodgate; both keep topics until deleted."""

    def __init__(self, real: Side, ours: Side) -> None:
        self._real = real
        self._ours = ours

    async def play_all(self, dialogues: Sequence[Dialogue], *, again: bool = True) -> list[Outcome]:
        """Play dialogues concurrently; return outcomes in order.

        Args:
            dialogues: Dialogues to play.
            again: Replay differing or unrepeatable dialogues with more patience.
        """
        places = asyncio.Semaphore(SIDE_BY_SIDE)
        places_again = asyncio.Semaphore(AGAIN_SIDE_BY_SIDE)

        async def one(dialogue: Dialogue) -> Outcome:
            async with places:
                outcome = await self.play(dialogue, _PATIENCE)
            if not again or (outcome.kept and outcome.found is None):
                return outcome
            # The real broker may have been slow twice: replay with low concurrency.
            async with places_again:
                return await self.play(dialogue, _MORE_PATIENCE)

        return list(await asyncio.gather(*map(one, dialogues)))

    async def warm_up(self, dialogues: Sequence[Dialogue]) -> None:
        """Play some dialogues to the real broker without comparing: a new broker is slow."""

        async def one(dialogue: Dialogue) -> None:
            await self._played(self._real, dialogue, _PATIENCE, expecting=False)

        await asyncio.gather(*map(one, dialogues[:SIDE_BY_SIDE]))

    async def play(self, dialogue: Dialogue, patience: Patience) -> Outcome:
        """Play a dialogue to the real broker twice, and to Floodgate."""
        first = await self._played(self._real, dialogue, patience, expecting=False)
        expected = dialogue.expecting(first)
        second = await self._played(self._real, expected, patience)
        pairs = zip(first, second, strict=False)
        if len(first) != len(second) or not all(agree(*pair) for pair in pairs):
            return Outcome(expected, kept=False)
        first_found = None
        for _ in range(PLAYS):
            found = disagreement(expected, await self._played(self._ours, expected, patience))
            if found is None:
                return Outcome(expected, kept=True)
            first_found = first_found or found
        return Outcome(expected, kept=True, found=first_found)

    async def shrunk(self, outcome: Outcome) -> Outcome:
        """Return the smallest dialogue found with the same cause."""
        assert outcome.found is not None
        cause, end = outcome.found.cause, outcome.found.index + 1
        dialogue = outcome.dialogue
        smallest = outcome
        steps = dialogue.steps[:end]
        while True:
            tries = [steps[:at] + steps[at + 1 :] for at in range(len(steps) - 1)]
            candidates = [
                replace(dialogue, steps=one).about(
                    dialogue.topic.replace("default/", f"default/{len(steps)}-{at}-")
                )
                for at, one in enumerate(tries)
            ]
            played = await self.play_all(candidates, again=False)
            good = [one for one in played if one.found is not None and one.found.cause == cause]
            if not good:
                return smallest
            smallest, steps = good[0], good[0].dialogue.steps

    async def _played(
        self, side: Side, dialogue: Dialogue, patience: Patience, *, expecting: bool = True
    ) -> Played:
        """Play to a side, on a topic created if necessary and deleted afterwards."""

        async def admin(method: str, topic: str, path: str) -> int:
            return await _call(side, method, topic, path)

        whole, path = dialogue.topic.removesuffix(PARTITION), "?force=true"
        if whole != dialogue.topic:
            await _call(side, "PUT", whole, "/partitions", PARTITIONS)
            path = f"/partitions{path}"
        played = await play(dialogue, side.address, patience, expecting=expecting, admin=admin)
        with suppress(TimeoutError):  # A slow broker deletes later; the topic is not used again.
            await _call(side, "DELETE", whole, path)
        return played


async def _call(side: Side, method: str, topic: str, path: str, body: str | None = None) -> int:
    """Send an admin call about a topic; return the status."""
    call = Rest(method, f"/admin/v2/{topic.replace('://', '/')}{path}", body, 0)
    return (await asyncio.to_thread(ask, side.web, call)).status
