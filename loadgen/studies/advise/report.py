"""The report about advised limits, as Markdown, as JSON, and as configuration to paste."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from loadgen.errors import writing
from loadgen.jvm_options import left_of
from loadgen.results.units import markdown_table
from loadgen.studies.advise.bounds import room_for_grants, safe_limits
from loadgen.studies.advise.goal import percent
from loadgen.studies.advise.limits import FLOW_KEYS, KEYS, MEMORY, TITLES, Knob
from loadgen.studies.advise.question import document_text
from loadgen.studies.advise.sentences import said
from loadgen.units import plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from loadgen.documents.model import Role
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.advise.question import Question

SCHEMA_VERSION = 5
REPORT_NAME, JSON_NAME, DOCUMENT_NAME = "advice.md", "advice.json", "advice.yaml"
_WIDTH = 96
_CELLS = ("today", "advised", "why")
_OF_MEMORY = {TITLES[name] for name in MEMORY}


# -- each key -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyFinding:
    """A configuration key's present value, its advised value, and the reason.

    Attributes:
        title: The key's short name in a table.
        today, advised: The values, written as in the configuration file.
        why: The reason for the advised value, in a few words.
    """

    server: Role
    key: str
    title: str
    today: str
    advised: str
    why: str


def findings(advice: Advice) -> Iterator[KeyFinding]:
    """Yield the present value, the advised value and the reason for each advised key."""
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
            why = _why(advice, Knob(server, name), same=today[key] == advised[key])
            yield KeyFinding(server, key, title, today[key], advised[key], why)


def _why(advice: Advice, knob: Knob, *, same: bool) -> str:
    question = advice.question
    if knob.name == "pause":
        return said(f"why-pause-{question.profile}")
    if knob.name not in MEMORY and same:
        return said("why-as-it-is")
    if same and advice.passes_today:
        return said("why-kept")
    if knob.name not in MEMORY:
        kind = "queue" if knob.name.endswith("queue") else "timeout"
        return said(f"why-{kind}", question=question)
    assert advice.setting is not None
    safe = knob.value(advice.setting) == getattr(safe_limits(question), knob.name)
    kind = knob.name.removesuffix("_mb")
    if not safe and advice.setting.of(knob.server).accounted_mb >= question.goal.accounted_mb:
        return said("why-accounted")
    room = room_for_grants(question, knob.set(advice.setting, 1))
    fits_heap = kind == "direct" and 1 < knob.value(room) == knob.value(advice.setting)
    reason = "why-grants-direct" if fits_heap else f"why-strains-{kind}"
    return said(f"why-safe-{kind}" if safe else reason)


def heads(advice: Advice) -> tuple[str, ...]:
    """Return the column heads of the table of advised keys.

    With two servers, the first head has the order in which their values appear.
    """
    return (" / ".join(advice.question.today.servers) if advice.question.proxy else "key", *_CELLS)


def rows(advice: Advice) -> list[tuple[str, ...]]:
    """Return the rows of the table of advised keys.

    Where proxy and broker differ, a cell has both values.
    """
    found: dict[str, list[KeyFinding]] = {}
    for each in findings(advice):
        if each.title in _OF_MEMORY and int(each.today) <= 0:
            each = replace(each, today=f"{each.today} (off)")
        found.setdefault(each.title, []).append(each)
    return [
        (title, *(" / ".join(dict.fromkeys(getattr(each, part) for each in of)) for part in _CELLS))
        for title, of in found.items()
    ]


# -- the files ------------------------------------------------------------------------------------


def write(advice: Advice, out: Path) -> list[Path]:
    """Write an advice as report, JSON, configuration and scenario; return the files' paths.

    Raises:
        LoadgenError: A file cannot be written.
    """
    texts = {
        REPORT_NAME: markdown(advice),
        JSON_NAME: to_json(document_of(advice), indent=2).decode() + "\n",
    }
    if advice.setting is not None:
        texts |= {f"{each}.conf": fragment(advice, each) for each in advice.setting.servers}
        texts[DOCUMENT_NAME] = document_text(advice.question, advice.setting)
    with writing(out):
        for name in ("broker.conf", "proxy.conf", DOCUMENT_NAME):
            (out / name).unlink(missing_ok=True)  # an older advice must not pass for the new advice
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]


def fragment(advice: Advice, server: Role) -> str:
    """Return the advised keys of a server as configuration text, with the reason for each key."""
    assert advice.setting is not None
    goal, profile = advice.question.goal, advice.question.profile
    keys = advice.setting.of(server).keys()
    lines = _comment(f"loadgen advise --profile {profile}: {goal}.")
    if server == "proxy" and profile == "pulsar":
        lines += _comment(said("no-flow-keys"))
        keys = {key: value for key, value in keys.items() if key not in FLOW_KEYS}
    for each in findings(advice):
        if each.server == server:
            lines += ["", *_comment(f"Today {each.today}: {each.why}.")]
            lines.append(f"{each.key}={keys.pop(each.key)}")
    if keys:
        lines += ["", *_comment(said("as-shipped"))]
        lines += [f"{key}={value}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]


def markdown(advice: Advice) -> str:
    """Return the report about advised limits in Markdown."""
    return "\n".join(_markdown(advice)).rstrip() + "\n"


def _markdown(advice: Advice) -> Iterator[str]:
    question = advice.question
    yield f"# Topic-list limits, profile {question.profile}\n"
    yield f"**Goal**: {question.goal}."
    load = said("load", **_figures(question))
    yield f"**Load**: {load}\n"
    yield "\n\n".join((*verdict(advice), *sure(advice))) + "\n"
    if advice.obstacles:
        heading = "## Why" if advice.complete else "## Cut"
        yield from _listed(heading, advice.obstacles)
    for warning in advice.warnings:
        yield f"> **Warning.** {warning}\n"
    for server in advice.setting.servers if advice.setting else ():
        yield f"## {server}.conf\n\n```properties\n{fragment(advice, server)}```\n"
    if advice.setting:
        yield from ("## Each key\n", *markdown_table(heads(advice), rows(advice)), "")
    yield from _listed("## Assumed", assumed(question))
    yield from _listed("## What else would help", what_else(question))


def _listed(heading: str, sentences: Iterable[str]) -> list[str]:
    return [f"{heading}\n", *(f"- {each}" for each in sentences), ""]


def verdict(advice: Advice) -> list[str]:
    """Return sentences on whether the present limits, and the advised ones, meet the goal."""
    question, told, found = advice.question, advice.question.goal.told, []
    if advice.today is not None:
        luck = said("shaky", band=question.times.band) if advice.shaky else ""
        found.append(said("today", told=told(advice.today), luck=luck))
    if advice.setting is None:
        kind = "nothing-divided" if advice.passes_today else "nothing-found"
        return [*found, said(kind, goal=question.goal)] if advice.complete else found
    outcome = "not tried" if advice.outcome is None else told(advice.outcome)
    kept = advice.setting == question.today
    found.append(said("kept") if kept else said("found", told=outcome))
    if advice.passes_today and not (kept or advice.shaky) and advice.promised:
        found.append(said("more-room"))
    if not advice.promised:
        kind = "unsure" if advice.complete else "unsure-yet"
        found.append(said(kind, band=question.times.band))
    return found


def sure(advice: Advice) -> list[str]:
    """Return sentences on the harder loads with which the advised limits meet or miss the goal."""
    question, goal, found = advice.question, advice.question.goal, []
    if advice.setting is None:
        return []
    if advice.bears:
        found.append(said("bears", bears="; ".join(advice.bears)))
    if advice.breaks:
        breaks = (f"{strain} ({', '.join(goal.misses(each))})" for strain, each in advice.breaks)
        found.append(said("breaks", breaks="; ".join(breaks)))
    if advice.edge is not None:
        found.append(said("edge", limits=advice.edge))
    if question.jvm is not None:
        limits = advice.setting.broker
        found += left_of("broker", question.jvm, limits.heap_mb, limits.direct_mb)
    if not advice.complete:
        found.append(said("cut", advice=advice))
    real = said("not-confirmed", why=advice.not_confirmed)
    if advice.confirmations:
        *before, last = advice.confirmations
        where = advice.stormed or said("confirmed-by-floodgate", profile=question.profile)
        real = said("confirmed", where=where, told=goal.told(last.outcome))
        real += said("missed-before", storms=plural(len(before), "storm")) if before else ""
    storms = plural(advice.tries, "storm")
    whose = said("times-stated" if question.stated_times else "times-given")
    return [*found, said("simulated", storms=storms, advice=advice, whose=whose, real=real)]


def _figures(question: Question) -> dict[str, Any]:
    """Return the values to fill into the sentences about the load and the assumptions."""
    families, spread = question.families.items(), question.spread_seconds
    return {
        "question": question,
        "largest": question.largest,
        "families": ", ".join(f"{count:,} {family}" for family, count in families),
        "start": f"over {spread:g} s" if spread else "at the same moment",
        "namespaces": plural(len(question.namespaces), "namespace"),
        "speeds": _speeds(question),
        "timeouts": " or ".join(f"{e:g}" for e in sorted({g.timeout for g in question.groups})),
        "listed": len(question.listed),
        "servers": "one broker behind one proxy" if question.proxy else "one broker",
    }


def assumed(question: Question) -> list[str]:
    """Return sentences on the assumptions that the advice makes about clients and servers."""
    names = ("speeds", "patterns", "patience", "servers", "turns")
    return [said(f"assumed-{name}", **_figures(question)) for name in names]


def _speeds(question: Question) -> str:
    counts: Counter[str] = Counter()
    for group in question.groups:
        read = group.read
        speed = f"at {rate_text(read.rate)}" if read.rate else "as fast as it comes"
        counts["never" if read.never else speed] += group.count
    (usual, _), *others = counts.most_common()
    more = (f", {percent(n / question.clients)} of them {speed}" for speed, n in others)
    return usual + "".join(more)


def what_else(question: Question) -> list[str]:
    """Return sentences on measures other than new limits that would help."""
    many = len(question.namespaces) < question.clients
    helps = {
        "spread-starts": not question.spread_seconds,
        "send-patterns": {"cpp", "go"} & question.families.keys(),
        "smaller-namespaces": many and question.largest.answer_bytes > 1_000_000,
        "other-profile": question.profile == "pulsar",
    }
    return [said(name) for name, does in helps.items() if does]


def document_of(advice: Advice) -> dict[str, Any]:
    """Return everything about an advice as a JSON object, including the report's sentences."""
    question, largest = advice.question, advice.question.largest
    sizes = {"charged_bytes": largest.charged_bytes, "answer_bytes": largest.answer_bytes}
    return {
        "schema_version": SCHEMA_VERSION,
        **vars(advice),
        "question": {
            **{each.name: getattr(question, each.name) for each in fields(question)},
            "namespaces": len(question.namespaces),
            "largest": {**vars(largest), **sizes},
        },
        "met": advice.met,
        "promised": advice.promised,
        "findings": [*findings(advice)],
        "verdict": " ".join(verdict(advice)),
        "sure": sure(advice),
        "warnings": advice.warnings,
        "settings": advice.setting.keys() if advice.setting else {},
        "assumed": assumed(question),
        "what_else": what_else(question),
    }
