"""Many simultaneous dialogues, each on its own topic."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tests.support.dialogues.comparison import Disagreement, disagreement
from tests.support.dialogues.dialogue import Dialogue
from tests.support.dialogues.player import Patience, play

SIDE_BY_SIDE = 80
PLAYS = 3
"""Attempts at a timed dialogue: a busy machine may be late for its second."""

ForgetTopic = "Callable[[str], Awaitable[None]]"


async def disagreements(
    dialogues: Sequence[Dialogue],
    address: str,
    forget: Callable[[str], Awaitable[None]],
    patience: Patience | None = None,
) -> list[Disagreement]:
    """Play dialogues to ``host:port`` and return each one's first disagreement.

    Args:
        dialogues: With expected frames.
        address: The server's.
        forget: Deletes a topic, by full name, before a repeat.
        patience: Waiting times.
    """
    places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(dialogue: Dialogue) -> Disagreement | None:
        async with places:
            found = None
            for number in range(PLAYS if dialogue.keeps_time else 1):
                if number:
                    await forget(dialogue.topic)
                found = disagreement(
                    dialogue, await play(dialogue, address, patience or Patience())
                )
                if found is None:
                    break
            return found

    found = await asyncio.gather(*map(one, dialogues))
    return [each for each in found if each is not None]
