"""Plays a dialogue to a server and returns the frames of both connections, step by step.

Expected frames are awaited first, generously, and only then a quiet period: a slow machine makes a
play longer, not different. With Failover consumers the frames depend on step durations, because the
active consumer is reported a second later: steps then keep the recording's pace.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from limiter.clock import LoopClock, clock_sleep, deadline
from proto import PulsarApi_pb2 as pb
from tests.support.dialogues import wire
from tests.support.dialogues.comparison import agree, in_order
from tests.support.dialogues.connection import DialogueConnection
from tests.support.dialogues.dialogue import Dialogue, Seen, Step

PACE_SECONDS = 0.29
"""Interval between the recording's steps, deduced from Failover's one-second notice."""
_BEHIND_QUIET_SECONDS = 0.05
"""Quiet time of a late step of a timed dialogue."""
ADMIN = -1
"""Placeholder for the admin's connection."""
_CLOCK = LoopClock()
_ANSWERED = frozenset(
    {
        "PRODUCER",
        "CLOSE_PRODUCER",
        "SUBSCRIBE",
        "SEND",
        "SEEK",
        "UNSUBSCRIBE",
        "CLOSE_CONSUMER",
        "GET_LAST_MESSAGE_ID",
        "CONSUMER_STATS",
        "PING",
        "GET_SCHEMA",
        "GET_OR_CREATE_SCHEMA",
        "PARTITIONED_METADATA",
    }
)
"""Commands that a server answers, or closes the connection."""

Played = tuple[tuple["Seen", ...], ...]
"""Frames of each step, up to the first disagreement."""


@dataclass(frozen=True)
class Patience:
    """A player's waiting times, in seconds.

    Attributes:
        quiet: Silence that ends a step.
        expected: Limit for expected frames.
        answer: Limit for an answer without known expected frames.
    """

    quiet: float = 0.2
    expected: float = 15.0
    answer: float = 3.0


async def play(
    dialogue: Dialogue,
    address: str,
    patience: Patience,
    *,
    expecting: bool = True,
    admin: Callable[[str, str, str], Awaitable[int]] | None = None,
) -> Played:
    """Play every step at ``host:port``; with ``expecting``, up to the first disagreement.

    Args:
        dialogue: Steps and expected frames.
        address: The server's.
        patience: Waiting times.
        expecting: Whether the expected frames are known.
        admin: Calls the admin: method, topic, and the path behind its name; returns the status.

    Raises:
        OSError: A connection could not be opened.
        TimeoutError: No CONNECTED came.
    """
    player = Player(dialogue, address, patience, expecting=expecting, admin=admin)
    try:
        return await player.run()
    finally:
        player.close()


class Player:
    """A play of a dialogue; see ``play`` for its parts."""

    def __init__(
        self,
        dialogue: Dialogue,
        address: str,
        patience: Patience,
        *,
        expecting: bool,
        admin: Callable[[str, str, str], Awaitable[int]] | None,
    ) -> None:
        self._dialogue = dialogue
        self._address = address
        self._patience = patience
        self._expecting = expecting
        self._admin = admin
        self._connections: list[DialogueConnection] = []
        self._ids: wire.MessageIds = {}
        self._names = {str(step.does.get("producer_name", "")) for step in dialogue.steps}
        self._received: list[Seen] = []
        self._arrival = asyncio.Event()
        self._last_moment = 0.0

    async def run(self) -> Played:
        """Play the steps and return each step's frames."""
        for number in (0, 1):
            self._connections.append(await self._opened(number))
        played: list[tuple[Seen, ...]] = []
        start = _CLOCK.now()
        for index, step in enumerate(self._dialogue.steps):
            await self._take(step)
            await self._rest(step, start + (index + 1) * PACE_SECONDS)
            played.append(in_order(self._received))
            self._received.clear()
            if self._expecting and not agree(step.then, played[-1]):
                break
        return tuple(played)

    def close(self) -> None:
        for connection in self._connections:
            connection.lose()

    async def _opened(self, number: int) -> DialogueConnection:
        def on_frame(command: pb.BaseCommand | None, behind: bytes) -> None:
            self._receive(number, command, behind)

        return await DialogueConnection.opened(self._address, on_frame)

    def _receive(self, number: int, command: pb.BaseCommand | None, behind: bytes) -> None:
        if command is None:
            found: Seen = {"connection": number, "frame": "closed"}
        else:
            found = wire.seen(number, command, behind)
            if command.type == pb.BaseCommand.SEND_RECEIPT:
                receipt = command.send_receipt
                self._ids[receipt.sequence_id] = receipt.message_id
        if found.get("producer_name", "") not in self._names:
            found["producer_name"] = "*"
        self._receive_seen(found)

    def _receive_seen(self, found: Seen) -> None:
        self._received.append(found)
        self._last_moment = _CLOCK.now()
        self._arrival.set()

    async def _take(self, step: Step) -> None:
        self._last_moment = _CLOCK.now()
        if step.is_reset:
            self._connections[step.connection].lose()
            self._connections[step.connection] = await self._opened(step.connection)
            return
        if step.is_rest:
            assert self._admin is not None, "this player was given no admin"
            topic, does = self._dialogue.topic, step.does
            status = await self._admin(does["rest"], topic, does["path"])
            self._receive_seen({"connection": ADMIN, "frame": "REST", "status": status})
            return
        # A refused message has no id to send.
        with suppress(KeyError):
            self._connections[step.connection].send(wire.command_bytes(step.does, self._ids))

    async def _rest(self, step: Step, end: float) -> None:
        """Wait for the expected frames, then for quiet."""
        if self._expecting:
            await self._until(lambda: self._has_come(step.then), self._patience.expected)
        elif step.command in _ANSWERED and self._connections[step.connection].is_open:
            connection = step.connection
            await self._until(lambda: self._came_on(connection), self._patience.answer)
        quiet = self._patience.quiet
        if self._dialogue.keeps_time and _CLOCK.now() + quiet > end:
            quiet = _BEHIND_QUIET_SECONDS
        while (left := self._last_moment + quiet - _CLOCK.now()) > 0:
            await clock_sleep(_CLOCK, left)
        if self._dialogue.keeps_time and (left := end - _CLOCK.now()) > 0:
            await clock_sleep(_CLOCK, left)

    def _came_on(self, connection: int) -> bool:
        return any(one["connection"] == connection for one in self._received)

    def _has_come(self, expected: Iterable[Seen]) -> bool:
        """Tell whether so many frames of each kind have come as must, on each connection."""
        return _kinds(self._received) >= _kinds(expected)

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with deadline(_CLOCK, seconds):
                while not done():
                    self._arrival.clear()
                    await self._arrival.wait()


def _kinds(frames: Iterable[Seen]) -> Counter[tuple[int, str]]:
    return Counter((one["connection"], one["frame"]) for one in frames)
