"""One HTML file about one or several runs: charts, tables, words; readable without any network."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError, UsageError
from loadgen.report.addition import addition_of, scenario_place
from loadgen.report.charts import (
    key_mark,
    main_curves,
    render_bars,
    render_panel,
    run_class,
    run_letter,
)
from loadgen.report.clients.coming_back import family_row
from loadgen.report.clients.splits import render_splits
from loadgen.report.figures import NOT_MEASURED, figure_rows, lateness, resident_parts, server_rows
from loadgen.report.html_table import render_table
from loadgen.report.judged import check_list, render_alarms, render_judgements, verdict_line
from loadgen.report.marks import restart_marks
from loadgen.report.panels import histograms, percentile_panel, time_axis, time_rows
from loadgen.report.sentences import headline, run_sentences, scenario_sentence
from loadgen.scenarios.registry import kind_named
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.report.charts import Panel
    from loadgen.report.panels import Row
    from loadgen.results.checks import CheckResult
    from loadgen.results.summary import Run

LARGEST_REPORT_BYTES = 2_000_000
_UPRIGHT = ", upright dotted ones restarts of servers, which the table lists"
# A scenario lists hundreds of namespaces; the first ones tell what they look like.
_ITEMS_SHOWN = 3


def write_report(
    path: Path,
    runs: Sequence[Run],
    *,
    title: str | None = None,
    checks: Sequence[CheckResult] = (),
    notes: Sequence[str] = (),
) -> None:
    """Write the report of ``runs`` to ``path``.

    Raises:
        LoadgenError: The file cannot be written, or would pass ``LARGEST_REPORT_BYTES``.
    """
    page = render_report(runs, title=title, checks=checks, notes=notes).encode()
    if len(page) > LARGEST_REPORT_BYTES:
        raise UsageError(
            f"the report of {len(runs)} runs would have {format_bytes(len(page))}; "
            "name fewer run directories at once"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page)
    except OSError as error:
        raise LoadgenError(
            f"cannot write the report to {path}: {error.strerror}; choose another --out"
        ) from error


def render_report(
    runs: Sequence[Run],
    *,
    title: str | None = None,
    checks: Sequence[CheckResult] = (),
    notes: Sequence[str] = (),
) -> str:
    """Render the whole page. Everything from a run directory is escaped.

    Runs whose scenario has a section of its own come last. Without a title its heading names what
    they were; checks and notes stand at its top.
    """
    runs = sorted(runs, key=lambda run: scenario_place(run.summary))
    groups = [list(found) for _, found in groupby(enumerate(runs), _place)]
    # Runs without a section of their own make the body of a page; others do where there are none.
    plain = [run for run in runs if addition_of(run.summary) is None]
    mixed, body = 0 < len(plain) < len(runs), plain or runs
    words = kind_named(body[0].summary.scenario).words
    summaries = [run.summary for run in body]
    families = family_row(body, time_axis(body))
    marks = restart_marks(body)
    rows = [
        replace(row, panels=[replace(panel, marks=marks) for panel in row.panels])
        for row in [*([families] if families else ()), *time_rows(body)]
    ]
    percentiles = percentile_panel(body)
    section = "".join(_section(group, own_cards=mixed) for group in groups)
    return Template(_asset("report_template.html")).substitute(
        title=escape(title or words.title),
        style=_asset("report.css"),
        script=_asset("report.js"),
        headline=escape(headline(summaries)),
        scenario=escape(_scenarios(body)),
        alarms=render_alarms(list(enumerate(runs))),
        notes="".join(f'<p class="scenario">{escape(note)}</p>' for note in notes),
        cards="\n".join(_card(index, run) for index, run in enumerate(body)),
        checks=_checks(checks),
        legend="\n".join(_legend(index, run) for index, run in enumerate(runs)),
        section_first="" if mixed else section,
        at_zero=words.at_zero,
        restarts=_UPRIGHT if marks else "",
        time_rows="\n".join(_row(row) for row in rows),
        latency=_latency(body, percentiles),
        splits=_splits(body),
        judgements=render_judgements(list(enumerate(runs))),
        section_last=section if mixed else "",
        table="".join(_table(group) for group in groups),
        servers=_servers(list(enumerate(runs))),
        words=_words(runs),
        details="\n".join(_details(index, run) for index, run in enumerate(runs)),
        series=_series([panel for row in rows for panel in row.panels], percentiles),
    )


def _place(numbered: tuple[int, Run]) -> tuple[bool, int]:
    return scenario_place(numbered[1].summary)


def _section(runs: Sequence[tuple[int, Run]], *, own_cards: bool) -> str:
    addition = addition_of(runs[0][1].summary)
    return "" if addition is None else addition.section(runs, own_cards)


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _scenarios(runs: Sequence[Run]) -> str:
    """Say what each client did, in the first run of each scenario."""
    groups = groupby(runs, key=lambda run: run.summary.scenario)
    return " ".join(scenario_sentence(next(group)) for _, group in groups)


def _card(index: int, run: Run) -> str:
    """Render a run at a glance: its memory large, what the clients got below."""
    summary = run.summary
    addition = addition_of(summary)
    if addition is not None:
        card = addition.card(index, summary).removesuffix("</article>")
        return f"{card}{verdict_line(run)}</article>"
    latency = summary.latency_seconds
    refused = ' class="bad"' if summary.refused_total else ""
    facts = [
        ("answered", f"<dd>{summary.answered:,} of {summary.requests:,}</dd>"),
        ("refused", f"<dd{refused}>{format_count(summary.refused_total)}</dd>"),
        ("median", f"<dd>{format_seconds(latency.p50) if latency else 'no answers'}</dd>"),
        ("slowest", f"<dd>{format_seconds(latency.max) if latency else 'no answers'}</dd>"),
    ]
    if summary.failed:
        facts.insert(2, ("failed", f'<dd class="bad">{format_count(summary.failed)}</dd>'))
    if summary.generator_limited:
        facts.append(("of it sent late", f'<dd class="bad">{lateness(summary)}</dd>'))
    if run.clients.num_rows:
        back = run.clients.num_rows - run.clients["back_seconds"].null_count
        facts.insert(0, ("clients back", f"<dd>{back:,} of {run.clients.num_rows:,}</dd>"))
    big, remark = map(escape, resident_parts(summary))
    whose = " and ".join(summary.processes) or "the servers"
    together = " together" if len(summary.processes) > 1 else ""
    what = f"{f'of memory over idle {remark}'.strip()}, {whose}{together}"
    if big == NOT_MEASURED:  # as in virtual time, where there is no memory
        what, cell = facts.pop(0)
        big = cell.removeprefix("<dd>").removesuffix("</dd>")
    listed = "".join(f"<dt>{name}</dt>{cell}" for name, cell in facts)
    return (
        f'<article class="card {run_class(index)}"><h3>{key_mark(index)} {escape(summary.label)}'
        f'</h3><div class="big">{big}</div><p class="of">{what}</p><dl>{listed}</dl>'
        f"{verdict_line(run)}</article>"
    )


def _checks(checks: Sequence[CheckResult]) -> str:
    if not checks:
        return ""
    failed = sum(not check.passed for check in checks)
    verdict = f"{failed} of {len(checks)} failed" if failed else f"all {len(checks)} hold"
    return f"<section><h2>Checks: {verdict}</h2>{check_list(checks)}</section>"


def _legend(index: int, run: Run) -> str:
    return (
        f'<button type="button" data-run="{index}" aria-pressed="true">{key_mark(index)} '
        f"{escape(run.summary.label)}</button>"
    )


def _row(row: Row) -> str:
    panels = "\n".join(render_panel(panel) for panel in row.panels)
    return (
        f'<div class="row"><h3>{escape(row.title)}</h3><p>{escape(row.meaning)}</p>'
        f'<div class="pair">{panels}</div></div>'
    )


def _latency(runs: Sequence[Run], percentiles: Panel | None) -> str:
    """Render the percentile curves beside the histograms."""
    curve = "<p>No client was answered.</p>" if percentiles is None else render_panel(percentiles)
    bars = "\n".join(render_bars(item) for item in histograms(runs))
    return (
        f'<div class="tall">{curve}</div><div><p class="note">Clients by waiting time: solid bars '
        f"were answered, hollow ones refused.</p>{bars}</div>"
    )


def _splits(runs: Sequence[Run]) -> str:
    """Render the splits of each run; of several they are folded."""
    opened = " open" if len(runs) == 1 else ""
    return "".join(
        f"<details{opened}><summary>{run_letter(index)}: {escape(run.summary.label)}</summary>"
        f"{render_splits(run)}</details>"
        for index, run in enumerate(runs)
    )


def _table(runs: Sequence[tuple[int, Run]]) -> str:
    return render_table(runs, figure_rows([run.summary for _, run in runs]))


def _servers(runs: Sequence[tuple[int, Run]]) -> str:
    """Show the servers that produced the figures; empty where nobody has told."""
    rows = server_rows([run.summary for _, run in runs])
    return (
        f"<section><h2>What produced this</h2>{render_table(runs, rows)}</section>" if rows else ""
    )


def _words(runs: Sequence[Run]) -> str:
    articles = "".join(
        f'<article class="{run_class(index)}"><h3>{key_mark(index)} {escape(run.summary.label)}'
        f"</h3><ul>{''.join(f'<li>{escape(text)}</li>' for text in run_sentences(run.summary))}"
        "</ul></article>"
        for index, run in enumerate(runs)
    )
    return f'<div class="stories">{articles}</div>'


def _details(index: int, run: Run) -> str:
    """Scenario and environment of one run, folded."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in flatten(run.description)
    )
    return (
        f"<details><summary>{run_letter(index)}: {escape(run.summary.label)}</summary>"
        f'<div class="scroll"><table><tbody>{rows}</tbody></table></div></details>'
    )


def flatten(document: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a JSON object as (dotted name, text) pairs; long lists by first items and length."""
    pairs: list[tuple[str, str]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            pairs += flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list) and len(value) > _ITEMS_SHOWN:
            shown = ", ".join(json.dumps(item) for item in value[:_ITEMS_SHOWN])
            pairs.append((f"{prefix}{name}", f"{shown}, … ({len(value):,} in all)"))
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            pairs.append((f"{prefix}{name}", text))
    return pairs


def _series(time_panels: Sequence[Panel], percentiles: Panel | None) -> str:
    """Return the data of hover read-outs as JSON: numbers and our own keys, no text of a run."""
    panels = [(panel, "time") for panel in time_panels]
    if percentiles is not None:
        panels.append((percentiles, "percentile"))
    document = {
        panel.key: {
            "axis": axis,
            "unit": panel.unit,
            "low": panel.x.low,
            "high": panel.x.high,
            "series": {
                curve.run: [[round(at, 3), round(value, 3)] for at, value in curve.points]
                for curve in main_curves(panel)
            },
        }
        for panel, axis in panels
    }
    return json.dumps(document, separators=(",", ":"))
