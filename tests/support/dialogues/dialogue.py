"""A dialogue: two connections' steps about a topic, and the frames received after each.

The form is the recording's. A step has ``connection`` (0 or 1), ``does`` and ``then``: ``does`` is
a command with its fields, or ``RESET``; each line of ``then`` is a received frame and its
connection. Wire format is in ``wire``, playing in ``player``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.golden.exchange import load_lines

RESET = "reset, and opened again"
"""An abrupt loss of the connection, instead of a command."""
FAILOVER = 2
"""Values of ``subType`` whose consumers learn the active consumer a second later."""

Seen = dict[str, Any]
"""A recorded frame: ``connection``, ``frame``, and the compared fields."""


@dataclass(frozen=True)
class Step:
    """An action of a connection, and the frames received until both were quiet.

    Attributes:
        connection: 0 or 1.
        does: The command, by field names; ``{"connection": RESET}`` for a loss; ``{"rest": METHOD,
            "path": ...}`` for an admin call about the topic.
        then: The recorded frames.
    """

    connection: int
    does: Mapping[str, Any]
    then: tuple[Seen, ...] = ()

    @property
    def is_reset(self) -> bool:
        """True if the connection is lost and opened again."""
        return self.does.get("connection") == RESET

    @property
    def is_rest(self) -> bool:
        return "rest" in self.does

    @property
    def command(self) -> str:
        """Name of the command, or ``RESET``, or ``REST``."""
        if self.is_rest:
            return "REST"
        return "RESET" if self.is_reset else str(self.does["command"])


@dataclass(frozen=True)
class Dialogue:
    """A topic and the steps on it.

    Attributes:
        name: As recorded.
        topic: Full name; part of the dialogue, because some rules hash it.
        steps: In order.
    """

    name: str
    topic: str
    steps: tuple[Step, ...]

    @property
    def keeps_time(self) -> bool:
        """True if the received frames depend on the steps' duration."""
        return any(step.does.get("subType") == FAILOVER for step in self.steps)

    def about(self, topic: str) -> Dialogue:
        """Return the same dialogue about another topic."""
        steps = tuple(
            replace(step, does={**step.does, "topic": topic}) if "topic" in step.does else step
            for step in self.steps
        )
        return Dialogue(self.name, topic, steps)

    def expecting(self, played: Sequence[Iterable[Seen]]) -> Dialogue:
        """Return the dialogue with a play's received frames as the recording."""
        pairs = zip(self.steps, played, strict=True)
        steps = tuple(replace(step, then=tuple(seen)) for step, seen in pairs)
        return replace(self, steps=steps)


def load_dialogues(path: Path) -> list[Dialogue]:
    """Read a recording: a dialogue a line."""
    return [
        Dialogue(
            row["case"],
            row["topic"],
            tuple(Step(one["connection"], one["does"], tuple(one["then"])) for one in row["steps"]),
        )
        for row in load_lines(path)
    ]
