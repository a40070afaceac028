"""The verdict on a run: one list of findings, from which code, junit, README and summary follow."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from loadgen.errors import ExitCode
from loadgen.results.expectations import judge, parse_expectations
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.results.expectations import Judged
    from loadgen.results.results import Results

# Later than this and the load was not the one that the document describes: a task, and the last of
# the clients that it starts at one moment.
START_ERROR_LIMIT_SECONDS = 0.05
CLIENT_START_ERROR_LIMIT_SECONDS = 0.25
# Of moments that are spread over time; of fewer than a hundred the 99th percentile would be the
# latest, for which the limits above are there.
LAG_P99_LIMIT_SECONDS = 0.01
FEWEST_MOMENTS = 100
STARTED_SHARE_LIMIT = 0.95
# The end of an answer is noticed so much too late: of one in a hundred, and of any.
LOOP_LAG_P99_LIMIT_SECONDS = 0.25
LOOP_LAG_MAX_LIMIT_SECONDS = 1.0
# A task has one event loop, which one core serves. Of shorter runs the share says nothing.
CPU_SHARE_LIMIT = 0.95
SHORTEST_CPU_SECONDS = 2.0
# A group of which fewer are answered needs an expectation that says so.
ANSWERED_SHARE = 0.5
# Behind the last answer, if nobody noted when all clients had left.
LEAVING_SECONDS = 1.0
_NAMED = 3
_OWN_FAILURES = tuple(
    os.strerror(number)
    for number in (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
)
"""Why this machine, not the server, made no connection."""


class Level(Enum):
    """What a finding makes of a run, from the best to the worst: its exit code and its words."""

    FINE = (ExitCode.PASSED, "passed")
    MISSED = (ExitCode.THRESHOLDS, "expectations were missed")
    UNRELIABLE = (ExitCode.GENERATOR_LIMITED, "the generator was the limit")
    INTERRUPTED = (ExitCode.INTERRUPTED, "interrupted")
    WRONG = (ExitCode.CORRECTNESS, "wrong answers")

    @property
    def rank(self) -> int:
        """Its place, 0 for the best."""
        return list(Level).index(self)


@dataclass(frozen=True)
class Finding:
    """Something that was looked at.

    Attributes:
        sentence: What was found, with its figures.
        source: What it was read from: an expectation, or the name of a check.
    """

    level: Level
    sentence: str
    source: str

    @property
    def fine(self) -> bool:
        """True if nothing is wrong with it."""
        return self.level is Level.FINE


@dataclass(frozen=True)
class Verdict:
    """All findings on a run; its level is that of the worst."""

    findings: Sequence[Finding]
    judged: Sequence[Judged] = ()

    @property
    def level(self) -> Level:
        """The worst level."""
        return max((each.level for each in self.findings), key=lambda level: level.rank)

    @property
    def exit_code(self) -> ExitCode:
        """What ``loadgen run`` exits with."""
        return self.level.value[0]

    @property
    def word(self) -> str:
        """The verdict in a few words; without expectations a run is not passed, but valid."""
        return "a valid run" if self.fine and not self.judged else self.level.value[1]

    @property
    def fine(self) -> bool:
        """True if every finding is."""
        return self.level is Level.FINE

    @property
    def count(self) -> str:
        """How many findings are not fine, in words."""
        bad = sum(not each.fine for each in self.findings)
        return (
            f"{bad} of {plural(len(self.findings), 'check')} failed"
            if bad
            else (f"all {len(self.findings)} hold")
        )


def worst_code(verdicts: Sequence[Verdict]) -> ExitCode:
    """Return what several runs exit with together: the worst, not the first that failed."""
    levels = [each.level for each in verdicts] or [Level.FINE]
    return max(levels, key=lambda level: level.rank).value[0]


def verdict_of(results: Results) -> Verdict:
    """Judge a run by its tables."""
    groups = [group["name"] for group in results.document.get("clients", ())]
    expectations = parse_expectations(results.document.get("expect") or (), groups or None)
    judged = judge(expectations, results)
    findings = [
        *_answers(results),
        *_delivered(results),
        *_books(results),
        *_whole(results.run),
        *_generator(results),
        *_answered(results, judged),
        *_expected(judged),
    ]
    return Verdict(findings, judged)


def _finding(bad: bool, level: Level, source: str, sentence: str, right: str) -> Finding:
    return Finding(level, sentence, source) if bad else Finding(Level.FINE, right, source)


def _answers(results: Results) -> Iterator[Finding]:
    """Yield whether answers were right, and tasks agree."""
    found = results.sql(
        "SELECT coalesce(count_if(outcome = 'wrong'), 0) AS wrong, count(*) AS n, "
        "min(CASE WHEN outcome = 'wrong' THEN reason END) AS reason FROM requests "
        "WHERE outcome IN ('answered', 'wrong')"
    )[0]
    yield _finding(
        found["wrong"] > 0, Level.WRONG, "answers",
        f"{plural(found['wrong'], 'answer was', 'answers were')} wrong: {found['reason']}.",
        f"No answer was wrong ({found['n']:,} checked).",
    )  # fmt: skip
    for row in results.query("agreement")[:_NAMED]:
        yield Finding(
            Level.WRONG,
            f"Answers to group {row['group']} differ for {row['namespace']}, which nobody changed: "
            f"{row['kinds']} kinds, of {row['least_topics']:,} to {row['most_topics']:,} names, in "
            f"tasks {row['first_task']} to {row['last_task']}.",
            "agreement",
        )


def _delivered(results: Results) -> Iterator[Finding]:
    """Yield whether messages and updates came, and came once; nothing if there were none."""
    kinds = {
        "lost": (
            "publish",
            "message",
            "{lost:,} messages of {group} never came to subscription {subscription}",
        ),
        "doubled": (
            "deliver",
            "message",
            "{doubled:,} messages came again to subscription {subscription}",
        ),
        "untold": (
            "update",
            "change",
            "{clients:,} clients of {group} were not told {untold:,} changes",
        ),
    }
    for name, (operation, noun, sentence) in kinds.items():
        rows = results.query(name)
        for row in rows[:_NAMED]:
            yield Finding(Level.WRONG, f"{sentence.format(**row)}.", name)
        count = results.value(
            "SELECT count(*) FROM requests WHERE operation = :kind", kind=operation
        )
        if count and not rows:
            yield Finding(Level.FINE, f"No {noun} was {name} ({count:,} checked).", name)


def _books(results: Results) -> Iterator[Finding]:
    """Yield whether servers hold nothing for clients that have left.

    Of a server that held memory before the run, for clients of others, and of one that could not
    be asked at the end, nothing is said.
    """
    left = results.run.get("left_seconds")
    if left is None:
        left = (results.value("SELECT max(done) FROM requests") or 0.0) + LEAVING_SECONDS
    used = [
        row
        for row in results.query("servers")
        if row["figure"] in ("heap.used", "direct.used")
        and row["last_seconds"] >= left
        and not row["first"]
    ]
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


def _whole(run: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield whether it ran to its end."""
    aborted = run.get("aborted")
    if aborted:
        yield Finding(Level.MISSED, f"{aborted} could no longer be met: it was ended early.", "end")
        return
    ended = run.get("interrupted") or any(task.get("interrupted") for task in run.get("tasks", ()))
    yield _finding(
        bool(ended), Level.INTERRUPTED, "end",
        "The run was interrupted: its figures are those of what had ended.",
        "It ran to its end.",
    )  # fmt: skip


def generator_figures(results: Results) -> dict[str, float | None]:
    """Return the worst of what its tasks tell of themselves, by the names that summary.json has."""
    tasks = results.run.get("tasks") or []
    lags = [t["lag_p99_seconds"] for t in tasks if t["moments"] >= FEWEST_MOMENTS]
    shares = [
        t["cpu_seconds"] / t["measured_seconds"]
        for t in tasks
        if t["measured_seconds"] >= SHORTEST_CPU_SECONDS
    ]
    reasons = ", ".join(f"'{reason}'" for reason in _OWN_FAILURES)
    counted = results.sql(
        f"SELECT count(*) AS n, coalesce(count_if(reason IN ({reasons})), 0) AS own FROM requests"
    )[0]
    ended = any(t.get("interrupted") for t in tasks)
    wanted = max(0 if ended else results.run.get("planned") or 0, counted["n"])
    worst = (
        "start_error_seconds", "client_start_error_seconds", "loop_lag_p99_seconds",
        "loop_lag_max_seconds", "descriptors",
    )  # fmt: skip
    return {
        **{name: max((t.get(name, 0) for t in tasks), default=None) for name in worst},
        "lag_p99_seconds": max(lags, default=None),
        "cpu_share": max(shares, default=None),
        "started_share": (counted["n"] - counted["own"]) / wanted if wanted else None,
    }


_LATE = (
    ("start_error_seconds", START_ERROR_LIMIT_SECONDS, "a task began"),
    (
        "client_start_error_seconds",
        CLIENT_START_ERROR_LIMIT_SECONDS,
        "a client's first request was",
    ),
    ("lag_p99_seconds", LAG_P99_LIMIT_SECONDS, "1 % of a task's moments came"),
    ("loop_lag_p99_seconds", LOOP_LAG_P99_LIMIT_SECONDS, "1 % of the time its event loop was"),
    ("loop_lag_max_seconds", LOOP_LAG_MAX_LIMIT_SECONDS, "once its event loop was"),
)


def _generator(results: Results) -> Iterator[Finding]:
    """Yield whether the generator kept its schedule: one limit is enough.

    What a server can cause, such as connections that it closes, counts for none of them.
    """
    found = generator_figures(results)
    limits = [
        f"{what} {format_seconds(value)} late, over the limit of {format_seconds(limit)}"
        for name, limit, what in _LATE
        if (value := found[name]) is not None and value > limit
    ]
    started, busy = found["started_share"], found["cpu_share"]
    if started is not None and started < STARTED_SHARE_LIMIT:
        limits.append(
            f"only {started:.1%} of the planned requests could be started, of at least "
            f"{STARTED_SHARE_LIMIT:.0%}"
        )
    if busy is not None and busy > CPU_SHARE_LIMIT:
        limits.append(f"a task used {busy:.0%} of a core, of at most {CPU_SHARE_LIMIT:.0%}")
    late = format_seconds(found["client_start_error_seconds"] or 0.0)
    right = f"clients at most {late} late" + (f", {busy:.0%} of a core busy" if busy else "")
    yield _finding(
        bool(limits), Level.UNRELIABLE, "generator",
        f"The generator was the limit, not the server: {'; '.join(limits)}.",
        f"The generator kept its schedule: {right}.",
    )  # fmt: skip


def _answered(results: Results, judged: Sequence[Judged]) -> Iterator[Finding]:
    """Yield groups that got next to nothing, where no expectation says what is to be got."""
    rows = results.sql(
        """SELECT r.group AS group, r.operation, count(*) AS due,
          count_if(r.outcome IN ('answered', 'wrong')) AS answered, count_if(g.reads) AS reads
        FROM measured r JOIN groups g ON r.group = g.group
        GROUP BY r.group, r.operation ORDER BY r.group, r.operation"""
    )
    if not rows:
        yield Finding(Level.MISSED, "No request was due: nothing was measured.", "requests")
        return
    expected = [each.expectation for each in judged]
    poor = [
        row
        for row in rows
        if row["reads"]  # Who does not read gets nothing, as it was meant.
        and row["answered"] < ANSWERED_SHARE * row["due"]
        and not any(each.is_about(row["group"], row["operation"]) for each in expected)
    ]
    for row in poor:
        got = f"only {row['answered']:,}" if row["answered"] else "none"
        name = f"{row['group']}.{row['operation']}"
        yield Finding(
            Level.MISSED,
            f"Of {plural(row['due'], 'request')} of {name} {got} got an answer, and the document "
            f"expects nothing of it: if that is meant, expect {name}.answered <= 50%.",
            "answered",
        )
    if not poor:
        yield Finding(Level.FINE, "Every group got what is expected, or most answers.", "answered")
    empty = [
        row
        for row in results.query("answers")
        if row["most_topics"] == 0
        and not any(
            each.measure.name.startswith("topics.") and each.is_about(row["group"], "list")
            for each in expected
        )
    ]
    for row in empty[:_NAMED]:
        yield Finding(
            Level.MISSED,
            f"No list of {row['namespace']} by group {row['group']} names a topic: load topics "
            f"first, or, if that is meant, expect {row['group']}.list.topics.max == 0.",
            "topics",
        )


def _expected(judged: Sequence[Judged]) -> Iterator[Finding]:
    for each in judged:
        text = each.expectation.text
        level = Level.FINE if each.holds else Level.MISSED
        yield Finding(level, f"{text}: {each.found}", text)
