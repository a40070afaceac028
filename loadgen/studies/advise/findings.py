"""The eight keys of an advice: what each is today, what is advised, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.studies.advise.bounds import safe_limits
from loadgen.studies.advise.limits import KEYS, MEMORY, Knob
from loadgen.studies.advise.sentences import said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.documents.model import Role
    from loadgen.studies.advise.advice import Advice

TITLES = {
    "heap_mb": "heap MB",
    "direct_mb": "direct MB",
    "heap_timeout_millis": "heap wait ms",
    "direct_timeout_millis": "direct wait ms",
    "heap_queue": "heap queue",
    "direct_queue": "direct queue",
    "high_water_mark": "high water mark",
    "low_water_mark": "low water mark",
    "pause": "pause (PIP-434)",
}
"""Fields of limits -> what a table calls them; all others stay as they are."""

_CELLS = ("today", "advised", "why")


@dataclass(frozen=True)
class KeyFinding:
    """One key of one server.

    Attributes:
        title: What a table calls it.
        today, advised: As the file says it.
        why: In a few words.
    """

    server: Role
    key: str
    title: str
    today: str
    advised: str
    why: str


def findings(advice: Advice) -> tuple[KeyFinding, ...]:
    """Return a finding for each key that is advised."""
    return tuple(_findings(advice))


def _findings(advice: Advice) -> Iterator[KeyFinding]:
    question, setting = advice.question, advice.setting
    if setting is None:
        return
    for server in setting.servers:
        today, advised = question.today.of(server).keys(), setting.of(server).keys()
        for name, title in TITLES.items():
            # A Pulsar proxy has no switch, and no marks.
            of_broker = name in ("pause", "high_water_mark", "low_water_mark")
            if of_broker and server == "proxy" and question.profile == "pulsar":
                continue
            key = KEYS[name]
            same = today[key] == advised[key]
            why = _why(advice, Knob(server, name), same=same)
            yield KeyFinding(server, key, title, today[key], advised[key], why)


def _why(advice: Advice, knob: Knob, *, same: bool) -> str:
    question = advice.question
    if knob.name == "pause":
        return said(f"why-pause-{question.profile}")
    if knob.name not in MEMORY and same:
        return said("why-as-it-is")
    if same and advice.today is not None and not question.goal.misses(advice.today):
        return said("why-kept")
    if knob.name not in MEMORY:
        kind = "queue" if knob.name.endswith("queue") else "timeout"
        return said(f"why-{kind}", question=question)
    assert advice.setting is not None
    safe = knob.value(advice.setting) <= getattr(safe_limits(question), knob.name)
    kind = knob.name.removesuffix("_mb")
    if not safe and advice.setting.of(knob.server).accounted_mb >= question.goal.accounted_mb:
        return said("why-accounted")
    return said(f"why-safe-{kind}") if safe else said(f"why-strains-{kind}")


def heads(advice: Advice) -> tuple[str, ...]:
    """Return the heads of the table of keys: whose value is which, where there are two servers."""
    return (" / ".join(advice.question.today.servers) if advice.question.proxy else "key", *_CELLS)


def rows(advice: Advice) -> list[tuple[str, ...]]:
    """Return title, today, advised and why of each key; of proxy / broker where these differ."""
    found: dict[str, list[KeyFinding]] = {}
    for each in findings(advice):
        found.setdefault(each.title, []).append(each)
    return [
        (title, *(" / ".join(dict.fromkeys(getattr(each, part) for each in of)) for part in _CELLS))
        for title, of in found.items()
    ]
