"""Each key of an advice with what binds it, what it costs, and what happens one step away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.studies.advise.bounds import least_limits
from loadgen.studies.advise.limits import FLOW_KEYS, KEYS, Knob, memory_knobs, step
from loadgen.studies.advise.question import reading_seconds
from loadgen.studies.advise.search import OutOfTimeError
from loadgen.studies.advise.sentences import said
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from loadgen.documents.model import Role
    from loadgen.studies.advise.limits import Setting
    from loadgen.studies.advise.question import Question
    from loadgen.studies.advise.search import Tries

    _Said = tuple[str, str, str, str, bool]


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


def findings(tries: Tries, setting: Setting, question: Question) -> tuple[KeyFinding, ...]:
    """Return a finding for each key of each server, after trying the neighbours of limits."""
    around = _Around(tries, setting, question)
    return tuple(
        around.finding(Knob(server, name), setting.of(server).keys()[key])
        for server in setting.servers
        for name, key in KEYS.items()
        # A Pulsar proxy has none of these.
        if not (server == "proxy" and question.profile == "pulsar" and key in FLOW_KEYS)
    )


@dataclass(frozen=True)
class _Around:
    """Where findings look."""

    tries: Tries
    setting: Setting
    question: Question

    def finding(self, knob: Knob, text: str) -> KeyFinding:
        """Return what is found of a key that has this value."""
        kinds = {"_mb": self._memory, "timeout_millis": self._timeout, "queue": self._queue}
        look = next((look for end, look in kinds.items() if knob.name.endswith(end)), self._flow)
        return KeyFinding(knob.server, knob.key, text, *look(knob, knob.value(self.setting)))

    def _away(self, knob: Knob, steps: int) -> tuple[str, list[str] | None]:
        """Return what happens some steps away, and what it misses; None: it was not tried."""
        setting = knob.moved(self.setting, steps)
        value = knob.value(setting)
        try:
            outcome = self.tries.outcome(setting)
        except OutOfTimeError:
            return said("not-tried", value=value), None
        return f"{value}: {self.tries.goal.told(outcome)}", self.tries.goal.misses(outcome)

    def _memory(self, knob: Knob, value: int) -> _Said:
        largest, lower = self.question.largest, value - step(value)
        least_mb: int = getattr(least_limits(largest), knob.name)
        kind, size = "direct memory", largest.answer_bytes
        if knob.name == "heap_mb":
            kind, size = "heap", largest.charged_bytes
        if lower < least_mb:
            binds = said("memory-binds-answer", largest=largest, size=size, least_mb=least_mb)
            decides = lower > 0
            name = "memory-below" if decides else "memory-zero"
            below = said(name, lower=lower, largest=largest)
        else:
            below, missed = self._away(knob, -1)
            binds, decides = self._bound_by(knob, missed, lower), bool(missed)
        costs = said("memory-costs", value=value, kind=kind)
        return binds, below, self._away(knob, 1)[0], costs, decides

    def _bound_by(self, knob: Knob, missed: list[str] | None, lower_mb: int) -> str:
        if missed is None:
            return said("memory-binds-time")
        if missed:
            goal = said("memory-binds-goal", missed="; ".join(missed))
            return self._with_first_estimates(goal, lower_mb) if knob.name == "heap_mb" else goal
        lower = {each: each.moved(self.setting, -1) for each in memory_knobs(self.setting)}
        tried = {each for each, setting in lower.items() if setting in self.tries.done}
        others = {each.key for each in tried if self.tries.misses(lower[each])}
        name = "memory-binds-other" if others else "memory-binds-nothing"
        return said(name, others=", ".join(sorted(others)))

    def _with_first_estimates(self, goal: str, heap_mb: int) -> str:
        """Say so where first requests would wait for each other with so much heap."""
        question = self.question
        needed = question.first_estimates_bytes + question.largest.charged_bytes
        if question.profile == "floodgate" or heap_mb * MB_BYTES >= needed:
            return goal
        count = len(question.listed)
        return said("memory-binds-estimates", count=count, needed=needed, goal=goal)

    def _timeout(self, knob: Knob, value: int) -> _Said:
        usual, limits = self.question.usual, [self.setting.of(e) for e in self.setting.servers]
        waits = sum(each.heap_timeout_millis + each.direct_timeout_millis for each in limits) / 1000
        (below, missed), (above, _) = self._away(knob, -1), self._away(knob, 1)
        reading = reading_seconds(usual.read, self.question.largest.answer_bytes)
        read = said("timeout-reading", reading=reading) if reading else ""
        binds = said("timeout-binds", timeout=usual.timeout, reading=read, waits=waits)
        return binds, below, above, said("timeout-costs", seconds=value / 1000), bool(missed)

    def _queue(self, knob: Knob, value: int) -> _Said:
        burst, lower, missed = self.question.clients, value - step(value), None
        binds, below = (
            said(f"queue-{each}", burst=burst, lower=lower) for each in ("binds-nothing", "below")
        )
        if burst > lower:
            binds, (below, missed) = said("queue-binds", burst=burst), self._away(knob, -1)
        above = said("queue-above", upper=value + step(value))
        return binds, below, above, said("queue-costs"), bool(missed)

    def _flow(self, knob: Knob, value: int) -> _Said:
        profile, kind = self.question.profile, knob.name.partition("_")[0]
        if kind == "pause":
            binds, below, costs = (
                said(f"switch-{each}-{profile}") for each in ("binds", "below", "costs")
            )
            return binds, below, "-", costs, False
        below, above = (
            said(f"flow-away-{profile}", value=each)
            for each in (value - step(value), value + step(value))
        )
        return said("flow-binds"), below, above, said(f"flow-costs-{kind}"), False
