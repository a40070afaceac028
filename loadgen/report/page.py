"""One HTML file about one or several runs: charts, tables, words; readable without any network."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError, UsageError
from loadgen.report.charts import key_mark, render_bars, render_panel, run_class, run_letter
from loadgen.report.figures import figure_rows, lateness, resident_parts
from loadgen.report.html_table import render_table
from loadgen.report.panels import histograms, percentile_panel, time_rows
from loadgen.report.sentences import headline, run_sentences, scenario_sentence
from loadgen.report.server_rows import server_rows
from loadgen.report.stuck.figures import stuck_rows
from loadgen.report.stuck.section import stuck_card, stuck_section
from loadgen.report.stuck.sentences import scenario_words
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.report.charts import Panel
    from loadgen.report.panels import Row
    from loadgen.results.check import CheckResult
    from loadgen.results.summary import Run

LARGEST_REPORT_BYTES = 2_000_000
DEFAULT_TITLE = "Topic-list storm"
DEFAULT_STUCK_TITLE = "Beside peers that do not read"
# A scenario lists hundreds of namespaces; the first ones tell what they look like.
_ITEMS_SHOWN = 3
_ALL_ASK, _FIRST_ASKED = "all clients ask", "the first listing is due"


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

    Args:
        runs: What the page is about; storms come before runs beside stuck peers.
        title: Its heading; None names what the runs were.
        checks: What is judged at its top.
        notes: What a reader has to know beforehand.
    """
    # Storms make the body of a page; runs beside stuck peers do where there is no storm.
    runs = sorted(runs, key=lambda run: run.summary.stuck is not None)
    stuck = [(index, run) for index, run in enumerate(runs) if run.summary.stuck is not None]
    mixed = 0 < len(stuck) < len(runs)
    body, others = (runs[: -len(stuck)], stuck) if mixed else (runs, [])
    summaries = [run.summary for run in body]
    rows, percentiles = time_rows(body), percentile_panel(body)
    section = stuck_section(stuck, own_cards=mixed)
    return Template(_asset("report_template.html")).substitute(
        title=escape(title or default_title(runs)),
        style=_asset("report.css"),
        script=_asset("report.js"),
        headline=escape(headline(summaries)),
        scenario=escape(_scenario(body[0])),
        notes="".join(f'<p class="scenario">{escape(note)}</p>' for note in notes),
        cards="\n".join(_card(index, run) for index, run in enumerate(body)),
        checks=_checks(checks),
        legend="\n".join(_legend(index, run) for index, run in enumerate(runs)),
        stuck_first="" if mixed else section,
        at_zero=_FIRST_ASKED if body[0].summary.stuck is not None else _ALL_ASK,
        time_rows="\n".join(_row(row) for row in rows),
        latency=_latency(body, percentiles),
        stuck_last=section if mixed else "",
        table=_tables(list(enumerate(body)), others),
        servers=_servers(list(enumerate(runs))),
        words=_words(runs),
        details="\n".join(_details(index, run) for index, run in enumerate(runs)),
        series=_series([panel for row in rows for panel in row.panels], percentiles),
    )


def default_title(runs: Sequence[Run]) -> str:
    """Return the heading of a page whose reader has given none."""
    beside_peers = all(run.summary.stuck is not None for run in runs)
    return DEFAULT_STUCK_TITLE if beside_peers else DEFAULT_TITLE


def _asset(name: str) -> str:
    return (files("loadgen.report") / name).read_text(encoding="utf-8")


def _scenario(run: Run) -> str:
    """Say what each client of a run did."""
    words = scenario_sentence if run.summary.stuck is None else scenario_words
    return words(run.description)


def _card(index: int, run: Run) -> str:
    """Render a run at a glance: its memory large, what the clients got below."""
    summary = run.summary
    if summary.stuck is not None:
        return stuck_card(index, summary)
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
    listed = "".join(f"<dt>{name}</dt>{cell}" for name, cell in facts)
    big, remark = map(escape, resident_parts(summary))
    what = f"of memory over idle {remark}".strip()
    whose = " and ".join(summary.processes) or "the servers"
    return (
        f'<article class="card {run_class(index)}"><h3>{key_mark(index)} {escape(summary.label)}'
        f'</h3><div class="big">{big}</div><p class="of">{what}, {whose}'
        f"{' together' if len(summary.processes) > 1 else ''}</p><dl>{listed}</dl></article>"
    )


def _checks(checks: Sequence[CheckResult]) -> str:
    if not checks:
        return ""
    items = "".join(
        f'<li><span class="mark {"good" if check.passed else "bad"}">'
        f"{'✓' if check.passed else '✗'}</span>{escape(check.sentence)}</li>"
        for check in checks
    )
    failed = sum(not check.passed for check in checks)
    verdict = f"{failed} of {len(checks)} failed" if failed else f"all {len(checks)} hold"
    return f'<section><h2>Checks: {verdict}</h2><ul class="checks">{items}</ul></section>'


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


def _tables(*parts: Sequence[tuple[int, Run]]) -> str:
    """Return a table for each part of the page that has runs."""
    return "".join(_table(part) for part in parts if part)


def _table(runs: Sequence[tuple[int, Run]]) -> str:
    summaries = [run.summary for _, run in runs]
    return render_table(runs, figure_rows(summaries, stuck_rows(summaries)))


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
                for curve in panel.curves
            },
        }
        for panel, axis in panels
    }
    return json.dumps(document, separators=(",", ":"))
