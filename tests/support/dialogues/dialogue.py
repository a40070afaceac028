"""A dialogue: what two connections do about one topic, step by step, and what they then receive.

The form is that of the recording. A step has ``connection`` (0 or 1), ``does`` and ``then``:
``does`` is a command with its fields, or ``RESET``; each line of ``then`` is what one received
frame says, with the connection it came on. Nothing here knows how commands look on the wire
(``wire``) or who plays them (``player``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

RESET = "reset, and opened again"
"""An abrupt loss of the connection, instead of a command."""
FAILOVER = 2
"""Of ``subType``: such consumers are told who is active about a second later."""

Seen = dict[str, Any]
"""One frame as a recording holds it: ``connection``, ``frame``, and the fields that it compares."""


@dataclass(frozen=True)
class Step:
    """One thing that one connection does, and all that both received until they were quiet.

    Attributes:
        connection: 0 or 1.
        does: The command, by the names of its fields; ``{"connection": RESET}`` for a loss;
            ``{"rest": METHOD, "path": ...}`` for a call of the admin about the topic.
        then: What was recorded.
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
        """True if it is a call of the admin."""
        return "rest" in self.does

    @property
    def command(self) -> str:
        """Name of the command, or ``RESET``, or ``REST``."""
        if self.is_rest:
            return "REST"
        return "RESET" if self.is_reset else str(self.does["command"])


@dataclass(frozen=True)
class Dialogue:
    """One topic and what is done with it.

    Attributes:
        name: As recorded.
        topic: Whole name; some rules hash it, so it is part of the dialogue.
        steps: In order.
    """

    name: str
    topic: str
    steps: tuple[Step, ...]

    @property
    def keeps_time(self) -> bool:
        """True if what is received depends on how long the steps take."""
        return any(step.does.get("subType") == FAILOVER for step in self.steps)

    def about(self, topic: str) -> Dialogue:
        """Return the same dialogue about another topic."""
        steps = tuple(
            replace(step, does={**step.does, "topic": topic}) if "topic" in step.does else step
            for step in self.steps
        )
        return Dialogue(self.name, topic, steps)

    def expecting(self, played: Sequence[Iterable[Seen]]) -> Dialogue:
        """Return the same dialogue with what a play received as what was recorded."""
        pairs = zip(self.steps, played, strict=True)
        steps = tuple(replace(step, then=tuple(seen)) for step, seen in pairs)
        return replace(self, steps=steps)


def load_dialogues(path: Path) -> list[Dialogue]:
    """Read a recording: one dialogue a line."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Dialogue(
            row["case"],
            row["topic"],
            tuple(Step(one["connection"], one["does"], tuple(one["then"])) for one in row["steps"]),
        )
        for row in rows
    ]
