"""The result of the demo: its checks, its report, its pictures and its summary."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from loadgen.demo.advice import advice_lines, advised
from loadgen.demo.checks import demo_checks, exit_code, hidden_storm, own_checks, stuck_checks
from loadgen.demo.plan import StormSize
from loadgen.demo.returning import returning_sentence
from loadgen.extras import PICTURES, is_installed
from loadgen.report.page import write_report
from loadgen.report.pictures import RUN_DIRECTORIES, draw_pictures
from loadgen.results.reading import load_run
from loadgen.results.summary import RunSummary, parse_summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.advice.advice import Advice
    from loadgen.demo.topics import DemoTopics
    from loadgen.errors import ExitCode
    from loadgen.live.steps import StepDisplay
    from loadgen.places.operator_files import OwnCluster
    from loadgen.results.checks import CheckResult
    from loadgen.topics.plan import TopicPlan
    from loadgen.topics.reading import OwnTopics


@dataclass(frozen=True)
class DemoOptions:
    """Options of the demo: what it runs, and where its results go.

    Attributes:
        clients: Connections, each of which asks once.
        read_rate_bytes_per_second: How fast each client reads; 0 is unlimited.
        executor: ``spark``, or ``process`` for the same without Spark and Java.
        tasks: Spark tasks, or processes, that share the clients.
        keep: Whether made topics stay on disk.
        own: An operator's servers; None: the demo's own.
        namespaces: Which of an operator's namespaces are listed; none: the largest.
    """

    topics: TopicPlan | OwnTopics
    clients: int
    read_rate_bytes_per_second: float
    out: Path
    executor: str = "spark"
    tasks: int = 2
    keep: bool = False
    own: OwnCluster | None = None
    namespaces: tuple[str, ...] = ()


SCHEMA_VERSION = 1
REPORT_NAME = "report.html"
SUMMARY_NAME = "summary.json"
TITLE = "A restart storm, and one client that reads nothing"


@dataclass(frozen=True)
class DemoParts:
    """The results of the demo's parts: summaries as written.

    Attributes:
        returning: The storm of consumers that retry; None where topics are an operator's.
        advice: For the demo's own cluster; None likewise.
    """

    storms: Mapping[str, dict[str, Any]]
    stuck: Mapping[str, dict[str, Any]]
    returning: dict[str, Any] | None = None
    advice: Advice | None = None


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo: of the storms, and of the second part.

    ``pictures`` are those that were drawn; ``hidden`` says why a rehearsal shows little;
    ``last_words`` are on consumers that retry, and the advice.
    """

    summaries: Mapping[str, RunSummary]
    stuck: Mapping[str, RunSummary]
    checks: Sequence[CheckResult]
    report: Path
    summary: Path
    duration_seconds: float
    pictures: Sequence[Path] = ()
    hidden: str | None = None
    last_words: Sequence[str] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The status that the demo's process exits with."""
        return exit_code([*self.summaries.values(), *self.stuck.values()], self.checks)


def conclude(
    options: DemoOptions,
    topics: DemoTopics,
    parts: DemoParts,
    steps: StepDisplay,
) -> DemoResult:
    """Judge the runs of both parts and write what is left for the reader."""
    storms, stuck = (
        {name: parse_summary(document) for name, document in part.items()}
        for part in (parts.storms, parts.stuck)
    )
    checks = _checks(options, topics, storms, stuck)
    hidden = hidden_storm(storms["off"], _size(options, topics)) if options.own else None
    runs = [load_run(options.out / RUN_DIRECTORIES / name) for name in (*storms, *stuck)]
    report = options.out / REPORT_NAME
    notes = [*(options.own.notes() if options.own else ()), *([hidden] if hidden else ())]
    words = [returning_sentence(parts.returning)] if parts.returning else []
    words += advice_lines(parts.advice) if parts.advice else []
    notes += words
    write_report(report, runs, title=_title(options, topics), checks=checks, notes=notes)
    drawn = options.own is not None and is_installed(PICTURES)
    pictures = draw_pictures(runs, options.out) if drawn else []
    duration_seconds = steps.elapsed_seconds
    summary = options.out / SUMMARY_NAME
    document = {
        **_described(options, topics),
        "notes": notes,
        "runs": dict(parts.storms),
        "stuck": dict(parts.stuck),
        "returning": parts.returning,
        "advice": advised(parts.advice) if parts.advice else None,
        "checks": [asdict(check) for check in checks],
        "passed": all(check.passed for check in checks),
        "duration_seconds": round(duration_seconds, 1),
    }
    summary.write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    return DemoResult(
        storms, stuck, checks, report, summary, duration_seconds, pictures, hidden, words
    )


def _checks(
    options: DemoOptions,
    topics: DemoTopics,
    storms: Mapping[str, RunSummary],
    stuck: Mapping[str, RunSummary],
) -> list[CheckResult]:
    if options.own is not None:
        return own_checks(storms)
    return demo_checks(storms, _size(options, topics)) + stuck_checks(stuck)


def _size(options: DemoOptions, topics: DemoTopics) -> StormSize:
    return StormSize(options.clients, topics.answer_bytes)


def _title(options: DemoOptions, topics: DemoTopics) -> str:
    if options.own is None:
        return TITLE
    listed = topics.namespaces[0].name
    others = len(topics.namespaces) - 1
    return f"A restart storm on {listed}" + (f" and {others:,} more" if others else "")


def _described(options: DemoOptions, topics: DemoTopics) -> dict[str, Any]:
    """Describe the storms, for the summary."""
    return {
        "schema_version": SCHEMA_VERSION,
        "topics": topics.topics,
        "namespaces": len(topics.namespaces),
        "clients": options.clients,
        "answer_bytes": topics.answer_bytes,
        "read_rate_bytes_per_second": options.read_rate_bytes_per_second,
        "executor": options.executor,
    }
