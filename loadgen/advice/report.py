"""The report of an advice: Markdown for a ticket, and the same as a JSON document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadgen.advice.findings import told
from loadgen.advice.fragments import fragment
from loadgen.advice.goal import percent
from loadgen.advice.scenario import document_of
from loadgen.advice.workload import NEVER
from loadgen.errors import LoadgenError
from loadgen.units import format_bytes, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadgen.advice.advice import Advice
    from loadgen.advice.goal import Outcome
    from loadgen.advice.limits import Setting
    from loadgen.advice.workload import Workload

SCHEMA_VERSION = 1
REPORT_NAME, JSON_NAME, DOCUMENT_NAME = "advice.md", "advice.json", "advice.yaml"


def write(advice: Advice, out: Path) -> list[Path]:
    """Write report, JSON, fragments and the scenario document; return their paths.

    Raises:
        LoadgenError: They cannot be written.
    """
    texts = {
        REPORT_NAME: markdown(advice),
        JSON_NAME: json.dumps(to_json(advice), indent=2, ensure_ascii=False) + "\n",
    }
    if advice.setting is not None:
        for server in advice.setting.servers:
            texts[f"{server}.conf"] = fragment(advice, server)
        texts[DOCUMENT_NAME] = _document(advice)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("broker.conf", "proxy.conf", DOCUMENT_NAME):
            (out / name).unlink(missing_ok=True)  # an older advice must not pass for this one
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LoadgenError(
            f"--out {out} cannot be written ({error.strerror}); choose another directory"
        ) from error
    return [out / name for name in texts]


def markdown(advice: Advice) -> str:
    """Return the report."""
    return "\n".join(_markdown(advice)).rstrip() + "\n"


def _markdown(advice: Advice) -> Iterator[str]:
    request = advice.request
    yield f"# Topic-list limits, profile {request.profile}"
    yield ""
    yield f"**Goal**: {request.goal}."
    yield f"**Load**: {load_sentence(request.workload)}"
    yield ""
    yield verdict(advice)
    if advice.obstacles:
        yield ""
        yield "## Nothing helps"
        yield ""
        yield from (f"- {each}" for each in advice.obstacles)
    if advice.warnings:
        yield ""
        yield from (f"> **Warning.** {each}" for each in advice.warnings)
    if advice.setting is not None:
        yield from _setting(advice)
    yield ""
    yield "## Assumed"
    yield ""
    yield from (f"- {each}" for each in assumed(request.workload, proxy=request.proxy))
    yield ""
    yield "## What else would help"
    yield ""
    yield from (f"- {each}" for each in what_else(advice))


def _setting(advice: Advice) -> Iterator[str]:
    assert advice.setting is not None
    for server in advice.setting.servers:
        yield ""
        yield f"## {server}.conf"
        yield ""
        yield "```properties"
        yield fragment(advice, server).rstrip()
        yield "```"
    yield ""
    yield "## Each key, and one step away from it"
    yield ""
    yield "A step is the larger of 1 MB and 10 %. Bold: one step below the goal is missed."
    yield ""
    yield "| server | key | value | what binds | one step below | one step above |"
    yield "|---|---|---|---|---|---|"
    for each in advice.findings:
        value = f"**{each.value}**" if each.decides else each.value
        yield (
            f"| {each.server} | `{each.key}` | {value} | {each.binds} | {each.below} "
            f"| {each.above} |"
        )
    if advice.notes:
        yield ""
        yield from (f"- {each}." for each in advice.notes)


def verdict(advice: Advice) -> str:
    """Say in a few sentences what was found, and how sure it is."""
    goal = advice.request.goal
    if advice.setting is None or advice.outcome is None:
        return "No setting of these keys meets the goal."
    told_today = ""
    if advice.today is not None:
        told_today = f" Today's limits, simulated: {told(goal, advice.today)}."
    searched = f"{plural(advice.tries, 'simulated storm')} ({advice.seconds:.0f} s)"
    how = "Computed, then checked by" if advice.quick else "Found by"
    found = f"{how} {searched}: {_told(advice, advice.outcome)}.{told_today}"
    if not advice.complete:
        found += (
            f" The search was cut after {advice.seconds:.0f} s, before every limit was at its "
            "smallest: --minutes gives it more."
        )
    return f"{found} {_confirmed(advice)}"


def _told(advice: Advice, outcome: Outcome) -> str:
    return f"{told(advice.request.goal, outcome)}, {percent(outcome.refused_share)} refused"


def _confirmed(advice: Advice) -> str:
    if not advice.confirmations:
        return f"Not confirmed by a real storm: {advice.not_confirmed}."
    last = advice.confirmations[-1]
    before = len(advice.confirmations) - 1
    smaller = (
        f" {plural(before, 'storm')} before it, with smaller limits, missed the goal."
        if before
        else ""
    )
    return (
        f"A real storm of {plural(last.outcome.clients, 'client')} here, against Floodgate in "
        f"profile {advice.request.profile} with these limits: {_told(advice, last.outcome)}."
        f"{smaller}"
    )


def load_sentence(workload: Workload) -> str:
    """Say what the load is."""
    families = ", ".join(f"{count:,} {family}" for family, count in workload.families.items())
    largest = workload.largest
    spread = (
        f"over {workload.spread_seconds:g} s" if workload.spread_seconds else "at the same moment"
    )
    return (
        f"{plural(workload.clients, 'client')} ({families}) that start {spread}, on "
        f"{plural(len(workload.namespaces), 'namespace')}; the largest, {largest.name}, has "
        f"{largest.topics:,} names: {format_bytes(largest.answer_bytes)} an answer, "
        f"{format_bytes(largest.charged_bytes)} charged to heap."
    )


def assumed(workload: Workload, *, proxy: bool) -> Iterator[str]:
    """Say what was taken for granted."""
    readers = workload.readers
    speed = f"at {rate_text(readers.rate)}" if readers.rate else "as fast as it comes"
    slow = ""
    if readers.slow_share:
        at = "never" if readers.slow_rate == NEVER else f"at {rate_text(readers.slow_rate)}"
        slow = f", and {percent(readers.slow_share)} of them {at}"
    yield (
        f"Clients read {speed}{slow}; {format_bytes(readers.network_bytes)} of an answer lie in "
        "kernels and network, which have left the server."
    )
    yield "Every pattern keeps all names, so that an answer is a whole list."
    yield f"A client gives up an answer after {workload.operation_timeout_seconds:g} s."
    one = "one broker behind one proxy" if proxy else "one broker"
    yield f"All namespaces are on {one}: with more of them each has a part of this load."
    yield (
        f"Of each family one client after the other asks for the next namespace, the largest "
        f"first: {len(workload.listed):,} of {len(workload.namespaces):,} are asked for. In storms "
        "their names all have about the mean length, and namespaces of like size are the same "
        "size where there are many sizes; number, total and largest are as given."
    )
    yield "Virtual time has stated times for a server's work, not those of your machines."


def what_else(advice: Advice) -> Iterator[str]:
    """Say what would help beside these keys."""
    workload = advice.request.workload
    if not workload.spread_seconds:
        yield (
            "Starts that are spread (`--spread 30s` here, a delay at random in the application): "
            "a burst is what all of these limits are for."
        )
    if any(family in ("cpp", "go") for family in workload.families):
        yield (
            "Clients that send their pattern (Java, polite): cpp and go ask for whole namespaces."
        )
    if len(workload.namespaces) < workload.clients and workload.largest.answer_bytes > 1_000_000:
        yield "Smaller namespaces: every client is sent all names of its own."
    if advice.request.profile == "pulsar":
        yield (
            "Profile floodgate: equal answers are charged once, who holds nothing goes first, and "
            "peers that do not read are closed while others wait."
        )


def to_json(advice: Advice) -> dict[str, Any]:
    """Return the report as a document."""
    request = advice.request
    workload = request.workload
    return {
        "schema_version": SCHEMA_VERSION,
        "profile": request.profile,
        "goal": asdict(request.goal),
        "load": {
            "clients": workload.clients,
            "families": dict(workload.families),
            "namespaces": len(workload.namespaces),
            "largest": asdict(workload.largest)
            | {
                "charged_bytes": workload.largest.charged_bytes,
                "answer_bytes": workload.largest.answer_bytes,
            },
            "readers": asdict(workload.readers),
            "operation_timeout_seconds": workload.operation_timeout_seconds,
            "spread_seconds": workload.spread_seconds,
            "seed": workload.seed,
        },
        "met": advice.met,
        "settings": _settings(advice.setting),
        "today": {"settings": _settings(request.today), "outcome": _outcome(advice.today)},
        "outcome": _outcome(advice.outcome),
        "findings": [asdict(each) for each in advice.findings],
        "obstacles": list(advice.obstacles),
        "warnings": list(advice.warnings),
        "notes": list(advice.notes),
        "assumed": list(assumed(workload, proxy=request.proxy)),
        "what_else": list(what_else(advice)),
        "tries": advice.tries,
        "seconds": round(advice.seconds, 1),
        "complete": advice.complete,
        "confirmations": [
            {"settings": _settings(each.setting), "met": each.met, "outcome": asdict(each.outcome)}
            for each in advice.confirmations
        ],
    }


def _settings(setting: Setting | None) -> Mapping[str, Mapping[str, str]]:
    return {} if setting is None else {each: setting.of(each).keys() for each in setting.servers}


def _outcome(outcome: Any) -> dict[str, Any] | None:  # noqa: ANN401
    return asdict(outcome) if outcome is not None else None


def _document(advice: Advice) -> str:
    request = advice.request
    assert advice.setting is not None
    return document_of(request.workload, request.goal, advice.setting, request.profile)
