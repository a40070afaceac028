"""``README.md`` of a run directory, for a pull request: the verdict, a table, what produced it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.report.addition import FigureRow
from loadgen.report.figures import figure_rows, server_rows
from loadgen.report.sentences import scenario_sentence
from loadgen.results.verdict import failures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadgen.results.checks import CheckResult
    from loadgen.results.summary import Run
    from loadgen.results.verdict import Verdict

_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})


def render_markdown(run: Run, verdict: Verdict) -> str:
    """Render one run; what comes from its directory is escaped."""
    lines = [
        f"# {'✓' if verdict.passed else '✗'} {_plain(run.summary.label)}: {verdict.word}",
        "",
        _plain(scenario_sentence(run)),
        "",
        *_checks(f"Checks: {failures(verdict)}", [*verdict.checks, *verdict.thresholds]),
        *_table("Figures", figure_rows([run.summary])),
        *_table("What produced this", [*server_rows([run.summary]), *_origin(run)]),
        "`index.html` shows all of it over time and needs no network; `summary.json` has every",
        "figure, `requests.parquet` every request.",
    ]
    return "\n".join(lines) + "\n"


def _checks(heading: str, checks: Sequence[CheckResult]) -> Iterator[str]:
    yield from (f"## {heading}", "", "| | |", "|---|---|")
    for check in sorted(checks, key=lambda check: check.passed):
        yield f"| {check.mark} | {_plain(check.sentence)} |"
    yield ""


def _table(heading: str, rows: Iterable[FigureRow]) -> Iterator[str]:
    yield from (f"## {heading}", "", "| | | |", "|---|---|---|")
    group = ""
    for row in rows:
        first = f"**{_plain(row.group)}**" if row.group != group else ""
        group = row.group
        cell = _plain(row.cells[0])
        value = f"**{cell}**" if row.alarming[0] else cell
        yield f"| {first} | {_plain(row.measure.strip())} | {value} |"
    yield ""


def _origin(run: Run) -> Iterator[FigureRow]:
    """Yield what the manifest says of where the run comes from."""
    found: dict[str, Any] = dict(run.description)
    environment = found.get("environment") or {}
    facts = {
        "loadgen": (environment.get("versions") or {}).get("floodgate"),
        "command": found.get("command_line"),
        "seed": (found.get("scenario") or {}).get("seed"),
        "configuration": found.get("config_hash"),
        "executor": found.get("executor"),
        "started": found.get("started_at"),
        "cores": environment.get("cores"),
        "system": environment.get("system"),
    }
    for name, value in facts.items():
        if value not in (None, ""):
            yield FigureRow("Run", name, [str(value)], [False])


def _plain(text: str) -> str:
    return text.translate(_SPECIAL)
