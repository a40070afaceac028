"""Each key of an advice with what binds it, what it costs, and what happens one step away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.studies.advise.bounds import least_limits
from loadgen.studies.advise.limits import FLOW_KEYS, KEYS, Knob, memory_knobs, step
from loadgen.studies.advise.question import reading_seconds
from loadgen.studies.advise.search import OutOfTimeError
from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural

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
            return f"{value}: not tried: no time was left", None
        return f"{value}: {self.tries.goal.told(outcome)}", self.tries.goal.misses(outcome)

    def _memory(self, knob: Knob, value: int) -> tuple[str, str, str, str, bool]:
        largest, lower = self.question.largest, value - step(value)
        least_mb: int = getattr(least_limits(largest), knob.name)
        kind, size = "direct memory", largest.answer_bytes
        if knob.name == "heap_mb":
            kind, size = "heap", largest.charged_bytes
        if lower < least_mb:
            binds = (
                f"the largest answer: {largest.name}, {largest.topics:,} names, counts "
                f"{format_bytes(size)}, so {least_mb} MB at least"
            )
            below, decides = "0 would turn the limit off", lower > 0
            if decides:
                below = f"{lower}: {largest.name} is never listed"
        else:
            below, missed = self._away(knob, -1)
            binds, decides = self._bound_by(knob, missed, lower), bool(missed)
        costs = f"up to {value} MB of {kind} for lists under way"
        return binds, below, self._away(knob, 1)[0], costs, decides

    def _bound_by(self, knob: Knob, missed: list[str] | None, lower_mb: int) -> str:
        if missed is None:
            return "the goal, as far as the time allowed to look"
        if missed:
            estimates = self._first_estimates(lower_mb) if knob.name == "heap_mb" else ""
            return f"{estimates}the goal: one step below {'; '.join(missed)}"
        lower = {each: each.moved(self.setting, -1) for each in memory_knobs(self.setting)}
        tried = {each for each, setting in lower.items() if setting in self.tries.done}
        others = {each.key for each in tried if self.tries.misses(lower[each])}
        if others:
            return f"another key binds: {', '.join(sorted(others))}"
        return "nothing within a step: half a step of room is in it"

    def _first_estimates(self, heap_mb: int) -> str:
        """Say so where first requests would wait for each other with so much heap."""
        question = self.question
        needed = question.first_estimates_bytes + question.largest.charged_bytes
        if question.profile == "floodgate" or heap_mb * MB_BYTES >= needed:
            return ""
        return (
            f"first requests of {len(question.listed):,} namespaces reserve 10,240 bytes each "
            f"and wait for the rest behind all others ({format_bytes(needed)}); "
        )

    def _timeout(self, knob: Knob, value: int) -> tuple[str, str, str, str, bool]:
        usual, limits = self.question.usual, [self.setting.of(e) for e in self.setting.servers]
        millis = sum(each.heap_timeout_millis + each.direct_timeout_millis for each in limits)
        (below, missed), (above, _) = self._away(knob, -1), self._away(knob, 1)
        reading = reading_seconds(usual.read, self.question.largest.answer_bytes)
        read = f", {format_seconds(reading)} of it for reading" if reading else ""
        binds = (
            f"clients give up after {usual.timeout:g} s{read}: all waits of a request together are "
            f"{format_seconds(millis / 1000)}"
        )
        costs = f"a refusal is told up to {format_seconds(value / 1000)} late"
        return binds, below, above, costs, bool(missed)

    def _queue(self, knob: Knob, value: int) -> tuple[str, str, str, str, bool]:
        burst, lower, missed = self.question.clients, value - step(value), None
        if burst <= lower:
            below = f"{lower}: no change, at most {burst:,} wait"
            binds = f"nothing: {plural(burst, 'client')} wait at most, and this is as shipped"
        else:
            below, missed = self._away(knob, -1)
            binds = f"the burst: {plural(burst, 'client')} may all wait at once"
        above = f"{value + step(value)}: no change, nobody is refused for want of a place"
        return binds, below, above, "about 1 kB for each request that waits", bool(missed)

    def _flow(self, knob: Knob, value: int) -> tuple[str, str, str, str]:
        if knob.name == "pause":
            return _SWITCH[self.question.profile]
        why = "each client asks for one list at a time"
        if self.question.profile == "pulsar":
            why = "the switch is off"
        costs = "none while nobody is paused" if "cooldown" in knob.name else "none"
        if knob.name == "high_water_mark":
            costs = "bytes that may wait for each connection before it counts as full"
        away = [f"{each}: no change, {why}" for each in (value - step(value), value + step(value))]
        return "nothing of this load: as shipped", away[0], away[1], costs


_SWITCH = {
    "pulsar": (
        "direct memory bounds what unread lists may hold; paused, a peer that does not read is "
        "spared by the keep-alive and holds it without end",
        "true: no change for clients that read; see the warning for those that do not",
        "-",
        "what is unread of messages and other answers has no bound for a connection",
    ),
    "floodgate": (
        "who does not read is asked for nothing more, and is closed while others wait for what it "
        "holds",
        "false: requests that a silent peer sends are read and answered without a bound",
        "-",
        "a peer that does not read waits for itself alone",
    ),
}
