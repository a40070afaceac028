"""Each key of an advice with what binds it, what it costs, and what happens one step away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from loadgen.studies.advise.bounds import least_limits
from loadgen.studies.advise.limits import MEMORY, Knob, step
from loadgen.studies.advise.question import reading_seconds
from loadgen.studies.advise.search import OutOfTimeError
from loadgen.studies.advise.sentences import said, said_of
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from loadgen.documents.model import Role
    from loadgen.studies.advise.limits import Setting
    from loadgen.studies.advise.question import Question
    from loadgen.studies.advise.search import Tries


@dataclass(frozen=True)
class KeyFinding:
    """One key of one server.

    Attributes:
        value: As the file says it.
        binds: Why it is not smaller, or not another.
        below, above: What happens one step away, with the value there.
        costs: What it costs.
        decides: True if the goal is missed one step below.
    """

    server: Role
    key: str
    value: str
    binds: str
    below: str
    above: str
    costs: str
    decides: bool = False


_KINDS = {
    "heap_mb": "heap",
    "direct_mb": "direct",
    "heap_timeout_millis": "timeout",
    "direct_timeout_millis": "timeout",
    "heap_queue": "queue",
    "direct_queue": "queue",
    "pause": "switch",
}
"""Fields of limits -> what the page calls them; all others stay as shipped."""


def findings(tries: Tries, setting: Setting, question: Question) -> tuple[KeyFinding, ...]:
    """Return a finding for each key that is advised, after trying the neighbours of limits."""
    around = _Around(tries, setting, question)
    return tuple(
        around.finding(Knob(server, name))
        for server in setting.servers
        for name in _KINDS
        # A Pulsar proxy has no switch.
        if not (server == "proxy" and question.profile == "pulsar" and name == "pause")
    )


@dataclass(frozen=True)
class _Around:
    """Where findings look."""

    tries: Tries
    setting: Setting
    question: Question

    def finding(self, knob: Knob) -> KeyFinding:
        """Return what the page says of a key; what it does not say is tried."""
        value = knob.value(self.setting)
        lower, upper, kind = value - step(value), value + step(value), self._kind(knob)
        figures = {**self._figures, "value": value, "lower": lower, "upper": upper}
        told, missed = said_of(kind, **figures), None
        if "below" not in told:
            told["below"], missed = self._away(knob, -1)
        if "above" not in told:
            told["above"], _ = self._away(knob, 1)
        if "binds" not in told:
            told["binds"] = self._bound_by(knob, missed)
        decides = bool(missed) or kind.endswith("-answer")
        text = self.setting.keys()[knob.server][knob.key]
        return KeyFinding(knob.server, knob.key, text, **told, decides=decides)

    def _kind(self, knob: Knob) -> str:
        kind, lower = _KINDS[knob.name], knob.value(knob.moved(self.setting, -1))
        if kind == "queue" and self.question.clients <= lower:
            return "queue-as-shipped"
        if knob.name in MEMORY and lower < getattr(least_limits(self.question.largest), knob.name):
            return f"{kind}-answer" if lower else f"{kind}-of-one"
        return f"switch-{self.question.profile}" if kind == "switch" else kind

    @cached_property
    def _figures(self) -> dict[str, object]:
        question, waits = self.question, 0
        for limits in map(self.setting.of, self.setting.servers):
            waits += limits.heap_timeout_millis + limits.direct_timeout_millis
        reading = reading_seconds(question.usual.read, question.largest.answer_bytes)
        return {
            "question": question,
            "least": least_limits(question.largest),
            "waits": waits / 1000,
            "reading": said("reading", seconds=reading) if reading else "",
        }

    def _away(self, knob: Knob, steps: int) -> tuple[str, list[str] | None]:
        """Return what happens some steps away, and what it misses; None: it was not tried."""
        setting = knob.moved(self.setting, steps)
        value = knob.value(setting)
        try:
            outcome = self.tries.outcome(setting)
        except OutOfTimeError:
            return said("not-tried", value=value), None
        return f"{value}: {self.tries.goal.told(outcome)}", self.tries.goal.misses(outcome)

    def _bound_by(self, knob: Knob, missed: list[str] | None) -> str:
        """Say what keeps a limit of memory from being a step smaller."""
        if missed is None:
            return said("bound-by-time")
        if not missed:
            return said("bound-by-nothing")
        question, heap = self.question, knob.moved(self.setting, -1).of(knob.server).heap_mb
        needed = question.first_estimates_bytes + question.largest.charged_bytes
        waiting = knob.name == "heap_mb" and heap * MB_BYTES < needed
        waiting = waiting and question.profile == "pulsar"
        name = "bound-by-first-requests" if waiting else "bound-by-goal"
        missing = "; ".join(missed)
        return said(name, count=len(question.listed), needed=needed, missed=missing)
