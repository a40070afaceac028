"""The report of an advice: Markdown for a ticket, the same as JSON, and files ready to paste."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.studies.advise.goal import percent
from loadgen.studies.advise.question import document_text
from loadgen.units import format_bytes, plural, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from loadgen.documents.model import Role
    from loadgen.plan.group import Reader
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.advise.goal import Outcome
    from loadgen.studies.advise.question import Question

SCHEMA_VERSION = 3
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
    texts = {
        REPORT_NAME: markdown(advice),
        JSON_NAME: json.dumps(to_json(advice), indent=2, ensure_ascii=False) + "\n",
    }
    if advice.setting is not None:
        texts |= {f"{each}.conf": fragment(advice, each) for each in advice.setting.servers}
        texts[DOCUMENT_NAME] = document_text(advice.question, advice.setting)
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
    goal, profile = advice.question.goal, advice.question.profile
    lines = _comment(f"loadgen advise --profile {profile}: {goal}.")
    if server == "proxy" and profile == "pulsar":
        lines += _comment(_NO_FLOW_KEYS)
    for each in advice.findings:
        if each.server == server:
            costs = f" Costs: {each.costs}." if each.costs != "none" else ""
            reason = f"{each.binds[0].upper()}{each.binds[1:]}.{costs}"
            lines += ["", *_comment(reason), f"{each.key}={each.value}"]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]


def markdown(advice: Advice) -> str:
    """Return the report."""
    return "\n".join(_markdown(advice)).rstrip() + "\n"


def _markdown(advice: Advice) -> Iterator[str]:
    question = advice.question
    yield f"# Topic-list limits, profile {question.profile}\n"
    yield f"**Goal**: {question.goal}."
    yield f"**Load**: {load_sentence(question)}\n"
    yield f"{verdict(advice)}\n"
    if advice.obstacles:
        yield from _listed("## Nothing helps", advice.obstacles)
    for warning in advice.warnings:
        yield f"> **Warning.** {warning}\n"
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
        yield from ("", *(f"- {each}." for each in advice.notes))
    yield from _listed("## Assumed", assumed(question))
    yield from _listed("## What else would help", what_else(question))


def _listed(heading: str, sentences: Iterable[str]) -> list[str]:
    return [f"{heading}\n", *(f"- {each}" for each in sentences), ""]


def verdict(advice: Advice) -> str:
    """Say in a few sentences what was found, and how sure it is."""
    goal = advice.question.goal
    if advice.setting is None or advice.outcome is None:
        return "No setting of these keys meets the goal."

    def told(outcome: Outcome) -> str:
        return f"{goal.told(outcome)}, {percent(outcome.refused_share)} refused"

    storms = plural(advice.tries, "simulated storm")
    how = "Computed, then checked by" if advice.quick else "Found by"
    found = f"{how} {storms} ({advice.seconds:.0f} s): {told(advice.outcome)}."
    if advice.today is not None:
        found += f" Today's limits, simulated: {goal.told(advice.today)}."
    if not advice.complete:
        found += (
            f" The search was cut after {advice.seconds:.0f} s, before every limit was at its "
            "smallest: --minutes gives it more."
        )
    if not advice.confirmations:
        return f"{found} Not confirmed by a real storm: {advice.not_confirmed}."
    *before, last = advice.confirmations
    found += (
        f" A real storm of {plural(last.outcome.clients, 'client')} here, against Floodgate in "
        f"profile {advice.question.profile} with these limits: {told(last.outcome)}."
    )
    if before:
        storms = plural(len(before), "storm")
        found += f" {storms} before it, with smaller limits, missed the goal."
    return found


def load_sentence(question: Question) -> str:
    """Say what the load is."""
    families = ", ".join(f"{count:,} {family}" for family, count in question.families.items())
    largest, spread = question.largest, question.spread_seconds
    return (
        f"{plural(question.clients, 'client')} ({families}) that start "
        f"{f'over {spread:g} s' if spread else 'at the same moment'}, on "
        f"{plural(len(question.namespaces), 'namespace')}; the largest, {largest.name}, has "
        f"{largest.topics:,} names: {format_bytes(largest.answer_bytes)} an answer, "
        f"{format_bytes(largest.charged_bytes)} charged to heap."
    )


def assumed(question: Question) -> Iterator[str]:
    """Say what was taken for granted."""
    speeds: Counter[str] = Counter()
    for group in question.groups:
        speeds[_speed(group.read)] += group.count
    *more, usual = [speed for speed, _ in reversed(speeds.most_common())]
    slow = "".join(f", {percent(speeds[e] / question.clients)} of them {e}" for e in more)
    yield (
        f"Clients read {usual}{slow}; {format_bytes(question.network_bytes)} of an answer lie in "
        "kernels and network, which have left the server."
    )
    yield "Every pattern keeps all names, so that an answer is a whole list."
    timeouts = sorted({group.timeout for group in question.groups})
    yield f"A client gives up an answer after {' or '.join(f'{e:g}' for e in timeouts)} s."
    one = "one broker behind one proxy" if question.proxy else "one broker"
    yield f"All namespaces are on {one}: with more of them each has a part of this load."
    yield (
        "Of each group one client after the other asks for the next namespace, the largest "
        f"first: {len(question.listed):,} of {len(question.namespaces):,} are asked for. In storms "
        "their names all have about the mean length, and namespaces of like size are the same "
        "size where there are many sizes; number, total and largest are as given."
    )
    yield "Virtual time has stated times for a server's work, not those of your machines."


def _speed(read: Reader) -> str:
    if read.never:
        return "never"
    return f"at {rate_text(read.rate)}" if read.rate else "as fast as it comes"


def what_else(question: Question) -> Iterator[str]:
    """Say what would help beside these keys."""
    if not question.spread_seconds:
        yield (
            "Starts that are spread (`arrive` of a group here, a delay at random in the "
            "application): a burst is what all of these limits are for."
        )
    if {"cpp", "go"} & question.families.keys():
        yield "Clients that send their pattern (Java, polite): cpp and go ask for whole namespaces."
    if len(question.namespaces) < question.clients and question.largest.answer_bytes > 1_000_000:
        yield "Smaller namespaces: every client is sent all names of its own."
    if question.profile == "pulsar":
        yield (
            "Profile floodgate: equal answers are charged once, who holds nothing goes first, and "
            "peers that do not read are closed while others wait."
        )


def to_json(advice: Advice) -> dict[str, Any]:
    """Return the answer as a document: all of it, and the sentences of the report."""
    question, largest = advice.question, advice.question.largest
    found = asdict(advice)
    found["question"] |= {
        "groups": [group.model_dump(mode="json") for group in question.groups],
        "families": question.families,
        "namespaces": len(question.namespaces),
        "largest": {
            **asdict(largest),
            "charged_bytes": largest.charged_bytes,
            "answer_bytes": largest.answer_bytes,
        },
    }
    return {
        "schema_version": SCHEMA_VERSION,
        **found,
        "met": advice.met,
        "verdict": verdict(advice),
        "warnings": advice.warnings,
        "settings": advice.setting.keys() if advice.setting else {},
        "assumed": list(assumed(question)),
        "what_else": list(what_else(question)),
    }
