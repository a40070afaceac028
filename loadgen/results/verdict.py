"""The verdict on a run: the findings decide exit code, junit.xml, README and summary."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from loadgen.errors import ExitCode
from loadgen.results.expectations import parse_expectations
from loadgen.results.judging import judge
from loadgen.results.questions import QUERIES
from loadgen.results.units import Unit, in_words
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.results.judging import Judged
    from loadgen.results.results import Results

# A group with a smaller share of answers needs an expectation of that.
ANSWERED_SHARE = 0.5
# After the last answer, if the moment at which all clients had left is unknown.
LEAVING_SECONDS = 1.0
_NAMED = 3


class Level(StrEnum):
    """Levels of findings, from best to worst, each with an exit code and words."""

    FINE = "fine", ExitCode.PASSED, "passed"
    MISSED = "missed", ExitCode.THRESHOLDS, "expectations were missed"
    UNRELIABLE = "unreliable", ExitCode.GENERATOR_LIMITED, "not to be relied on"
    INTERRUPTED = "interrupted", ExitCode.INTERRUPTED, "interrupted"
    WRONG = "wrong", ExitCode.CORRECTNESS, "wrong answers"

    exit_code: ExitCode
    words: str

    def __new__(cls, name: str, exit_code: ExitCode, words: str) -> Self:
        """Create a level with the name as value, an exit code and words."""
        level = str.__new__(cls, name)
        level._value_, level.exit_code, level.words = name, exit_code, words
        return level

    @property
    def rank(self) -> int:
        """The level's number in the order from best to worst; 0 for the best."""
        return list(Level).index(self)


@dataclass(frozen=True)
class Finding:
    """The result of one check of a run.

    Attributes:
        source: The judged expectation, or the name of the check.
        sentence: A sentence with the result and its figures.
    """

    level: Level
    source: str
    sentence: str

    @property
    def fine(self) -> bool:
        """True if the check passed."""
        return self.level is Level.FINE


_UNEXPECTED = {Level.FINE: "a valid run", Level.MISSED: "too little was answered"}


@dataclass(frozen=True)
class Verdict:
    """All findings about a run; the worst finding decides the verdict's level."""

    findings: Sequence[Finding]
    judged: Sequence[Judged] = ()

    @property
    def level(self) -> Level:
        """The level of the worst finding."""
        return max((each.level for each in self.findings), key=lambda level: level.rank)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of ``loadgen run`` for this verdict."""
        return self.level.exit_code

    @property
    def word(self) -> str:
        """The verdict in a few words, which mention expectations only if the run has some."""
        if self.judged or self.level not in _UNEXPECTED:
            return self.level.words
        return _UNEXPECTED[self.level]

    @property
    def fine(self) -> bool:
        """True if every finding is fine."""
        return self.level is Level.FINE

    @property
    def worst_first(self) -> list[Finding]:
        """All findings, sorted by level with the worst first."""
        return sorted(self.findings, key=lambda each: -each.level.rank)

    @property
    def failed(self) -> list[Finding]:
        """The findings that are not fine, the worst first."""
        return [each for each in self.worst_first if not each.fine]

    @property
    def count(self) -> str:
        """The number of failed checks, in words."""
        return failures([each.fine for each in self.findings])


def failures(fine: Sequence[bool]) -> str:
    """Return words on the number of failed checks, given whether each check passed."""
    bad, of = fine.count(False), len(fine)
    return f"{bad} of {plural(of, 'check')} failed" if bad else f"all {plural(of, 'check')} hold"


def verdict_of(results: Results) -> Verdict:
    """Check a run by the tables, and judge the expectations of the scenario."""
    groups = [group["name"] for group in results.document.get("clients", ())]
    expectations = parse_expectations(results.document.get("expect") or (), groups or None)
    judged = judge(expectations, results)
    findings = [
        *_answers(results),
        *_books(results),
        *_whole(results),
        *_policies(results),
        *_generator(results),
        *_answered(results, judged),
    ]
    for each in judged:
        level, text = Level.FINE if each.holds else Level.MISSED, each.expectation.text
        findings.append(Finding(level, text, f"{text}: {each.found}"))
    # Findings added by a study, which knows more than the document.
    further = results.run.get("missed") or {}
    findings += [Finding(Level.MISSED, source, said) for source, said in further.items()]
    return Verdict(findings, judged)


def _finding(bad: bool, level: Level, source: str, sentence: str, right: str) -> Finding:
    return Finding(level if bad else Level.FINE, source, sentence if bad else right)


_CHECKED = {
    "agreement": (
        "", "",
        "Answers to group {group} differ for {namespace}, which nobody changed: {kinds} kinds, of "
        "{least_topics:,} to {most_topics:,} names, in tasks {first_task} to {last_task}.",
    ),
    "lost": (
        "publish", "message",
        "{lost:,} messages of {group} never came to subscription {subscription}.",
    ),
    "doubled": (
        "deliver", "message", "{doubled:,} messages came again to subscription {subscription}."
    ),
    "untold": (
        "update", "change", "{clients:,} clients of {group} were not told {untold:,} changes."
    ),
}  # fmt: skip
"""Questions with rows of wrong answers: the operation, a noun, and a sentence for a row."""


def _answers(results: Results) -> Iterator[Finding]:
    """Yield findings about wrong or contradictory answers, and about lost or repeated messages."""
    (row,) = results.sql(
        "SELECT count(*) FILTER (outcome IN ('answered', 'wrong')) AS checked, histogram(operation)"
        " AS of, count(*) FILTER (outcome = 'wrong') AS wrong, "
        "min(reason) FILTER (outcome = 'wrong') AS reason FROM requests"
    )
    yield _finding(
        row["wrong"] > 0, Level.WRONG, "answers",
        f"{plural(row['wrong'], 'answer was', 'answers were')} wrong: {row['reason']}.",
        f"No answer was wrong ({row['checked']:,} checked).",
    )  # fmt: skip
    counts = row["of"] or {}
    for name, (operation, noun, sentence) in _CHECKED.items():
        if name == "lost" and results.run.get("lost"):
            continue  # The messages may be in the rows of a lost task.
        found = results.query(name)
        for row in found[:_NAMED]:
            yield Finding(Level.WRONG, name, sentence.format(**row))
        if operation in counts and not found:
            right = f"No {noun} was {name} ({counts[operation]:,} checked)."
            yield Finding(Level.FINE, name, right)


def _books(results: Results) -> Iterator[Finding]:
    """Yield a finding about memory still accounted for by servers after all clients have left.

    Left out are servers holding memory for foreign clients before the run, and servers without an
    answer at the end.
    """
    told = results.run.get("servers") or {}
    used = results.sql(
        f"SELECT process, figure, last FROM ({QUERIES['servers'].sql}) "
        "WHERE figure IN ('heap.used', 'direct.used') AND first = 0 "
        "AND (list_contains(:seen, process) OR last_seconds >= :left) ORDER BY process, figure",
        seen=[name for name, each in told.items() if each.get("seen_at_the_end")],
        left=results.ended + LEAVING_SECONDS,
    )
    held = [
        f"{format_bytes(row['last'])} of {row['process']} {row['figure'].partition('.')[0]} memory"
        for row in used
        if row["last"]
    ]
    if used:
        yield _finding(
            bool(held), Level.WRONG, "books",
            f"All clients have left, and still accounted for are {' and '.join(held)}.",
            "The servers hold nothing for clients that have left.",
        )  # fmt: skip


_FAULT = re.compile(r'fault="((?:[^"\\]|\\.)*)"')


def _policies(results: Results) -> Iterator[Finding]:
    """Yield a finding for each failed admission policy, replaced by ``fifo``."""
    failed = results.sql(
        "SELECT DISTINCT process, metric FROM samples WHERE value > 0 AND "
        "starts_with(metric, 'floodgate_topic_list_policy_faults_total') ORDER BY ALL"
    )
    for row in failed:
        fault = "".join(_FAULT.findall(row["metric"])).replace('\\"', '"')
        sentence = (
            f"The admission policy of the {row['process']} has failed, so that fifo took its place "
            f"and the figures are not its own: {fault}."
        )
        yield Finding(Level.UNRELIABLE, "policy", sentence)


def _whole(results: Results) -> Iterator[Finding]:
    """Yield a finding about whether the run ended normally and lost no task."""
    run = results.run
    if lost := run.get("lost"):
        yield Finding(Level.UNRELIABLE, "end", f"The load was not whole: {lost}.")
        return
    if aborted := run.get("aborted"):
        yield Finding(Level.MISSED, "end", f"{aborted} could no longer be met: it was ended early.")
        return
    ended = run.get("interrupted") or any(task.get("interrupted") for task in run.get("tasks", ()))
    begun = results.value("SELECT count(DISTINCT client) FROM requests") if ended else 0
    yield _finding(
        bool(ended), Level.INTERRUPTED, "end",
        "The run was interrupted: its figures are those of what had ended, of "
        f"{plural(begun, 'client')} of {sum(task['clients'] for task in run.get('tasks', ()))}.",
        "It ran to its end.",
    )  # fmt: skip


_LIMITS = (
    # Beyond these limits the load was not the document's: a task, and the last of the clients that
    # a task starts at one moment.
    ("start_error_seconds", 0.05, "a task began {} late"),
    ("client_start_error_seconds", 0.25, "a client's first request was {} late"),
    # Of moments that are spread over time.
    ("lag_p99_seconds", 0.01, "1 % of a task's moments came {} late"),
    # The end of an answer is noticed too late: of an answer in a hundred, and of any answer.
    ("loop_lag_p99_seconds", 0.25, "1 % of the time its event loop was {} late"),
    ("loop_lag_max_seconds", 1.0, "once its event loop was {} late"),
    # A task has one event loop, served by one core.
    ("cpu_share", 0.95, "a task used {} of a core"),
    ("unstarted_share", 0.05, "{} of the requests could not be started"),
)
"""Figures of the load generator, the limit of each, and a sentence for a value above the limit."""
# Of fewer than a hundred the 99th percentile would be the maximum, which has other limits.
FEWEST_MOMENTS = 100
# In shorter runs the share of a core is meaningless.
SHORTEST_CPU_SECONDS = 2.0
_OWN_FAILURES = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
"""Connection errors caused by this machine rather than by the server."""


def generator_figures(results: Results) -> dict[str, float | None]:
    """Return the worst measurements of a run's tasks, such as delays, by name in summary.json."""
    tasks = results.run.get("tasks") or []
    lags = [t["lag_p99_seconds"] for t in tasks if t["moments"] >= FEWEST_MOMENTS]
    shares = [
        t["cpu_seconds"] / t["measured_seconds"]
        for t in tasks
        if t["measured_seconds"] >= SHORTEST_CPU_SECONDS
    ]
    reasons = ", ".join(f"'{os.strerror(number)}'" for number in _OWN_FAILURES)
    started = f"CASE WHEN reason IN ({reasons}) THEN 0E0 ELSE 1E0 END"
    worst = (
        "start_error_seconds", "client_start_error_seconds", "loop_lag_p99_seconds",
        "loop_lag_max_seconds", "descriptors",
    )  # fmt: skip
    return {
        **{name: max((t.get(name, 0) for t in tasks), default=None) for name in worst},
        "lag_p99_seconds": max(lags, default=None),
        "cpu_share": max(shares, default=None),
        "started_share": results.value(f"SELECT avg({started}) FROM requests"),
    }


def generator_limits(results: Results) -> str:
    """Return words on where the load generator was too slow; empty if it kept its schedule.

    Failures that a server can cause, such as closed connections, are not included.
    """
    return _exceeded(generator_figures(results))


def _exceeded(found: Mapping[str, float | None]) -> str:
    limits = []
    for name, limit, text in _LIMITS:
        started = found["started_share"] if name == "unstarted_share" else None
        value = found.get(name) if started is None else round(1 - started, 9)
        unit = Unit.SECONDS if name.endswith("seconds") else Unit.SHARE
        if value is not None and value > limit:
            said = text.format(in_words(unit, value))
            limits.append(f"{said}, over the limit of {in_words(unit, limit)}")
    return "; ".join(limits)


def _generator(results: Results) -> Iterator[Finding]:
    """Yield a finding about whether the load generator kept its schedule.

    Otherwise the run is unreliable.
    """
    found = generator_figures(results)
    limits = _exceeded(found)
    late, busy = format_seconds(found["client_start_error_seconds"] or 0.0), found["cpu_share"]
    right = f"clients at most {late} late" + (f", {busy:.0%} of a core busy" if busy else "")
    yield _finding(
        bool(limits), Level.UNRELIABLE, "generator",
        f"The generator was the limit, not the server: {limits}.",
        f"The generator kept its schedule: {right}.",
    )  # fmt: skip


_ENDS = (
    *("answered", "refused", "failed", "timeout", "disconnected", "unreachable"),
    *("response", "back"),
)
"""Measures of the ends of requests, and of clients that are back."""


def _answered(results: Results, judged: Sequence[Judged]) -> Iterator[Finding]:
    """Yield findings about groups of clients with few answers or only empty lists.

    Groups whose answers are covered by an expectation are left out.
    """
    rows = results.query("by-group-operation")
    if not rows:
        yield Finding(Level.MISSED, "requests", "No request was due: nothing was measured.")
        return

    def meant(group: str, operation: str, *measures: str) -> bool:
        said = (each.expectation for each in judged)
        return any(each.what in measures and each.is_about(group, operation) for each in said)

    deaf = {row["name"] for row in results.sql('SELECT "group" AS name FROM groups WHERE deaf')}
    poor = 0
    for row in rows:
        name, due, answered = row["part"], row["requests"], row["answered"] + row["wrong"]
        group, _, operation = name.partition(".")
        if group in deaf or answered >= ANSWERED_SHARE * due or meant(group, operation, *_ENDS):
            continue
        poor += 1
        said = (
            f"Of {plural(due, 'request')} of {name} "
            f"{f'only {answered:,}' if answered else 'none'} got an answer, and the document "
            f"expects nothing of it: if that is meant, expect {name}.answered <= 50%."
        )
        yield Finding(Level.MISSED, "answered", said)
    if not poor:
        said = "Every reading group got most of its answers, or what is expected."
        yield Finding(Level.FINE, "answered", said)
    listed = (row for row in results.query("answers") if row["most_topics"] == 0)
    empty = [row for row in listed if not meant(row["group"], "list", "topics")]
    for row in empty[:_NAMED]:
        said = (
            f"No list of {row['namespace']} by group {row['group']} names a topic: load topics "
            f"first, or, if that is meant, expect {row['group']}.list.topics.max == 0."
        )
        yield Finding(Level.MISSED, "topics", said)
