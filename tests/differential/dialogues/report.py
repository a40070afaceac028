"""Report of a run of dialogues, by command and by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.differential.dialogues.run import Outcome
from tests.differential.figures import Added, missed

LEAST_AGREE, LEAST_KEPT, LEAST_PRODUCTIVE = 0.99, 0.9, 0.6
COMMANDS = (
    "PRODUCER",
    "SEND",
    "CLOSE_PRODUCER",
    "SUBSCRIBE",
    "FLOW",
    "ACK",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SEEK",
    "UNSUBSCRIBE",
    "CLOSE_CONSUMER",
    "GET_LAST_MESSAGE_ID",
    "CONSUMER_STATS",
    "PING",
    "RESET",
    "GET_SCHEMA",
    "GET_OR_CREATE_SCHEMA",
    "PARTITIONED_METADATA",
    "REST",
)
_JUDGED_FROM = 200
"""Fewest dialogues after which each command must have occurred."""


@dataclass
class DialogueFigures(Added):
    """Counts of dialogues, and of their steps by command."""

    compared: int = 0
    dropped: int = 0
    agreed: int = 0
    productive: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)

    def count(self, outcome: Outcome) -> None:
        if not outcome.kept:
            self.dropped += 1
            return
        self.compared += 1
        steps = outcome.dialogue.steps
        self.productive += any(one["frame"] == "MESSAGE" for step in steps for one in step.then)
        found = outcome.found
        self.agreed += found is None
        for step in steps[: found.index + 1] if found is not None else steps:
            self.steps[step.command] += 1
        if found is not None:
            self.differing[found.step.command] += 1
            self.causes[found.cause] += 1

    def summary(self) -> str:
        """Return the figures in a line."""
        whole = max(self.compared, 1)
        return (
            f"{self.compared} compared, {self.dropped} dropped; "
            f"{self.productive / whole:.1%} deliver messages; "
            f"{self.agreed / whole:.2%} agree to the end"
        )

    def lines(self) -> Iterator[str]:
        """Yield every command, and every cause, most frequent first."""
        yield "   steps  differ first  command"
        for name in sorted(self.steps, key=lambda one: (-self.differing[one], one)):
            yield f"{self.steps[name]:8}  {self.differing[name]:12}  {name}"
        for cause, count in self.causes.most_common():
            yield f"{count:8} x {cause}"

    def complaints(self) -> list[str]:
        """Return a sentence for each missed bound."""
        whole = max(self.compared, 1)
        bounds = [
            ("agree to the end", self.agreed / whole, LEAST_AGREE),
            ("are kept", whole / (whole + self.dropped), LEAST_KEPT),
            ("deliver messages", self.productive / whole, LEAST_PRODUCTIVE),
        ]
        found = missed(bounds)
        if self.compared >= _JUDGED_FROM:
            found += [f"{name} never came" for name in COMMANDS if not self.steps[name]]
        return found


def dialogue_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a differing dialogue: steps, answers, and the difference."""
    found = outcome.found
    assert found is not None
    yield f"{outcome.dialogue.name} about {outcome.dialogue.topic}: {found.cause}"
    for index, step in enumerate(outcome.dialogue.steps[: found.index]):
        does = " ".join(f"{name}={value}" for name, value in step.does.items() if name != "topic")
        brings = ", ".join(one["frame"] for one in step.then)
        yield f"  {index} on {step.connection}: {does} -> {brings or 'nothing'}"
    yield str(found)


def figures_of(outcomes: Sequence[Outcome]) -> DialogueFigures:
    figures = DialogueFigures()
    for outcome in outcomes:
        figures.count(outcome)
    return figures
