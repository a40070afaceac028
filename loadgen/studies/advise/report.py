"""The report of an advice: Markdown for a ticket, the same as JSON, and files ready to paste."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.studies.advise.question import NEVER, document_text, percent, told
from loadgen.units import format_bytes, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.documents.model import Role
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.advise.question import Outcome, Workload

SCHEMA_VERSION = 2
REPORT_NAME, JSON_NAME, DOCUMENT_NAME = "advice.md", "advice.json", "advice.yaml"
_WIDTH = 96
_NO_FLOW_KEYS = (
    "A Pulsar proxy has no pulsarChannel* keys: its water marks are Netty's, 65536 and 32768."
)


def write(advice: Advice, out: Path) -> list[Path]:
    """Write report, JSON, fragments and the scenario document; return their paths.

    Raises:
        LoadgenError: They cannot be written.
    """
    request, setting = advice.request, advice.setting
    texts = {
        REPORT_NAME: markdown(advice),
        JSON_NAME: json.dumps(to_json(advice), indent=2, ensure_ascii=False) + "\n",
    }
    if setting is not None:
        texts |= {f"{server}.conf": fragment(advice, server) for server in setting.servers}
        texts[DOCUMENT_NAME] = document_text(
            request.workload, request.goal, setting.keys(), request.profile
        )
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


def fragment(advice: Advice, server: Role) -> str:
    """Return the part of one server's configuration file, a reason for each key."""
    goal, profile = advice.request.goal, advice.request.profile
    lines = [*_comment(f"loadgen advise --profile {profile}: {goal}.")]
    if server == "proxy" and profile == "pulsar":
        lines += _comment(_NO_FLOW_KEYS)
    for each in advice.findings:
        if each.server == server:
            costs = f" Costs: {each.costs}." if each.costs != "none" else ""
            lines += ["", *_comment(f"{each.binds}.{costs}"), f"{each.key}={each.value}"]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    text = text[:1].upper() + text[1:]
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]


def markdown(advice: Advice) -> str:
    """Return the report."""
    return "\n".join(_markdown(advice)).rstrip() + "\n"


def _markdown(advice: Advice) -> Iterator[str]:
    request = advice.request
    yield f"# Topic-list limits, profile {request.profile}\n"
    yield f"**Goal**: {request.goal}."
    yield f"**Load**: {load_sentence(request.workload)}\n"
    yield f"{verdict(advice)}\n"
    if advice.obstacles:
        yield "## Nothing helps\n"
        yield _list(advice.obstacles)
    for warning in advice.warnings:
        yield f"> **Warning.** {warning}"
    if advice.warnings:
        yield ""
    for server in advice.setting.servers if advice.setting else ():
        yield f"## {server}.conf\n\n```properties\n{fragment(advice, server)}```\n"
    if advice.findings:
        yield "## Each key, and one step away from it\n"
        yield "A step is the larger of 1 MB and 10 %. Bold: one step below the goal is missed.\n"
        yield "| server | key | value | what binds | one step below | one step above |"
        yield "|---|---|---|---|---|---|"
        for each in advice.findings:
            value = f"**{each.value}**" if each.decides else each.value
            cells = (each.server, f"`{each.key}`", value, each.binds, each.below, each.above)
            yield f"| {' | '.join(cells)} |"
        yield ""
        if advice.notes:
            yield _list([f"{each}." for each in advice.notes])
    yield "## Assumed\n"
    yield _list([*assumed(request.workload, proxy=request.proxy)])
    yield "## What else would help\n"
    yield _list([*what_else(advice)])


def _list(sentences: Any) -> str:  # noqa: ANN401 - any sequence of texts
    return "\n".join(f"- {each}" for each in sentences) + "\n"


def verdict(advice: Advice) -> str:
    """Say in a few sentences what was found, and how sure it is."""
    goal = advice.request.goal
    if advice.setting is None or advice.outcome is None:
        return "No setting of these keys meets the goal."
    storms = plural(advice.tries, "simulated storm")
    how = "Computed, then checked by" if advice.quick else "Found by"
    found = f"{how} {storms} ({advice.seconds:.0f} s): {_told(advice, advice.outcome)}."
    if advice.today is not None:
        found += f" Today's limits, simulated: {told(goal, advice.today)}."
    if not advice.complete:
        found += (
            f" The search was cut after {advice.seconds:.0f} s, before every limit was at its "
            "smallest: --minutes gives it more."
        )
    if not advice.confirmations:
        return f"{found} Not confirmed by a real storm: {advice.not_confirmed}."
    *before, last = advice.confirmations
    smaller = f" {plural(len(before), 'storm')} before it, with smaller limits, missed the goal."
    return (
        f"{found} A real storm of {plural(last.outcome.clients, 'client')} here, against Floodgate "
        f"in profile {advice.request.profile} with these limits: {_told(advice, last.outcome)}."
        f"{smaller if before else ''}"
    )


def _told(advice: Advice, outcome: Outcome) -> str:
    return f"{told(advice.request.goal, outcome)}, {percent(outcome.refused_share)} refused"


def load_sentence(workload: Workload) -> str:
    """Say what the load is."""
    families = ", ".join(f"{count:,} {family}" for family, count in workload.families.items())
    largest, spread = workload.largest, workload.spread_seconds
    return (
        f"{plural(workload.clients, 'client')} ({families}) that start "
        f"{f'over {spread:g} s' if spread else 'at the same moment'}, on "
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
    """Return the answer as a document: all of it, and the sentences of the report."""
    found, request = asdict(advice), advice.request
    load, largest = found["request"].pop("workload"), request.workload.largest
    sizes = {"charged_bytes": largest.charged_bytes, "answer_bytes": largest.answer_bytes}
    namespaces = {"namespaces": len(request.workload.namespaces)}
    return {
        "schema_version": SCHEMA_VERSION,
        **found,
        "met": advice.met,
        "verdict": verdict(advice),
        "load": {**load, **namespaces, "largest": asdict(largest) | sizes},
        "settings": advice.setting.keys() if advice.setting else {},
        "assumed": list(assumed(request.workload, proxy=request.proxy)),
        "what_else": list(what_else(advice)),
    }
