"""The sections of an HTML page: charts and tables about runs, grouped by subject.

All texts are escaped. The unit of a number follows from the name of its column.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

from loadgen.alerts.rules import SHIPPED_RULES, alerts_of
from loadgen.alerts.told import (
    alert_rows,
    alert_sentences,
    gap_sentences,
    seen_by_scrapes,
    seen_rows,
)
from loadgen.engine.rows import Outcome
from loadgen.report.drawing import render
from loadgen.report.run_charts import CHARTS, QUESTIONS
from loadgen.results.comparing import figures_of
from loadgen.results.questions import QUERIES
from loadgen.results.summary import summary_of
from loadgen.results.tables import TABLES
from loadgen.results.units import SELDOM, Unit, cell, columns, in_words, paths
from loadgen.results.verdict import verdict_of
from loadgen.results.vocabulary import of_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadgen.report.charts import Bars, Chart
    from loadgen.results.results import Results

_PAGE_WIDTH = 380
"""Width of a chart on a page: that of a phone, for legible letters."""
_MOST_CHARTS = 12
"""Most charts of a kind on a page: a run may have ten operations, and a comparison ten runs."""
NOTE = """Response is from the moment a request was due until the last byte of its answer, service
from the moment it was sent. Requests without an answer count as infinite: a percentile among them
is never. Figures leave out the warm-up; charts over time show it shaded. One MB is 1,048,576
bytes, as in Pulsar's own configuration."""
_SCRAPED = """A scrape each 5 s, and the rules of deploy/alerts.yml; times are since the start. The
servers are assumed to be idle before the run, and unchanged after the run."""
_PLAIN = """Plain numbers are seconds, bytes, bytes a second, times a second or a share of 1, as
docs/scenarios.md says of each key."""
_TABLES: dict[str, Sequence[str]] = {
    "by-group-operation": (*SELDOM, "bytes"),
    "answers": (),
    "back": ("family", "asked", "refused"),
    "by-namespace": (*SELDOM, "bytes"),
    "events": ("text", "most_seconds"),
    "reasons": (),
    "servers": (),
    "tails": ("family", "item"),
}
"""Questions shown on a page, each with columns to hide if empty."""
_FOLDED = ("by-namespace", "events", "servers")
_SECTIONS = (
    ("Requests by group and operation", NOTE, "outcomes", ("by-group-operation", "answers")),
    ("Requests over time", "", "requests", ()),
    ("Each request", "Of many the slowest of each moment. Rings got no answer.", "each", ()),
    ("How long they waited", "A line ends where the rest never got an answer.", "distribution", ()),
    (
        "Who came back",
        "When clients were served completely, counted from the moment each was to start.",
        "back",
        ("back", "events"),
    ),
    ("Requests without an answer", "", "", ("reasons",)),
    ("The servers", "Dashed lines are limits.", "servers", ("servers",)),
    ("Slowest requests", "", "", ("tails",)),
    ("Namespaces, the slowest first", "", "", ("by-namespace",)),
)
"""Heading, hint, kind of chart, and tables (only on the page of a single run)."""


def section(heading: str, body: str, hint: str = "") -> str:
    """Return a section of a page as HTML; ``body`` must be HTML, too."""
    told = f'<p class="hint">{escape(hint)}</p>' if hint else ""
    return f"<section><h2>{escape(heading)}</h2>{told}{body}</section>"


def sections(runs: Sequence[Results]) -> list[str]:
    """Return all sections of a page on runs as HTML, leaving out empty ones."""
    found = []
    if len(runs) == 1 and (body := _prometheus(runs[0])):
        found.append(section("What Prometheus shows", body, _SCRAPED))
    for heading, hint, chart, tables in _SECTIONS:
        body = _drawn(list(CHARTS[chart](runs))) if chart else ""
        if len(runs) == 1:
            body += "".join(_asked(runs[0], name) for name in tables)
        if body:
            found.append(section(heading, body, hint))
    return found


def _prometheus(run: Results) -> str:
    """Return HTML on what Prometheus would show of a run: scraped peaks, and shipped alerts.

    The result is empty if the run has no samples.
    """
    seen = [*seen_rows(seen_by_scrapes(run))]
    if not seen or not SHIPPED_RULES.exists():
        return ""
    alerts = alerts_of(run)
    told = f"<p>{escape(' '.join((*gap_sentences(run), *alert_sentences(alerts))))}</p>"
    if alerts.found:
        told += table([*alert_rows(alerts)])
    return told + table(seen)


def _drawn(charts: Sequence[Chart | Bars]) -> str:
    """Return charts as HTML, side by side; empty if there is no chart."""
    narrow = (render(replace(each, width=_PAGE_WIDTH)) for each in charts[:_MOST_CHARTS])
    figures = "".join(f"<div>{each}</div>" for each in narrow)
    more = len(charts) - _MOST_CHARTS
    left = f'<p class="hint">{more} further charts are not shown.</p>' if more > 0 else ""
    return f'<div class="charts">{figures}</div>{left}' if figures else ""


def _asked(run: Results, name: str) -> str:
    """Return the title and rows of a shipped query as an HTML table; empty if there is no row."""
    question = (QUERIES if name in QUERIES else QUESTIONS)[name]
    rows = run.sql(question.sql)
    if name == "servers":  # Each row has a unit of its own.
        rows = [of_server(row) for row in rows]
    if name == "by-namespace":  # A single namespace has the figures of all requests.
        rows = sorted(rows, key=lambda row: -row["p99"]) if len(rows) > 1 else []
    if name == "back" and not any(row["back"] for row in rows):
        rows = rows if "discover" in {each["do"] for each in run.document["clients"]} else []
    if not rows:
        return ""
    told = table(rows, _TABLES[name])
    if name in _FOLDED:
        return folded(f"{question.title} {len(rows):,} rows", told)
    return f"<p>{escape(question.title)}</p>{told}"


def ask(run: Results) -> str:
    """Return HTML that lists the columns of a run's tables and shows example queries."""
    place = run.directory
    tables = "".join(
        f"<li><code>{name}</code>: <code>{', '.join(schema.names)}</code></li>"
        for name, schema in TABLES.items()
    )
    examples = escape(
        f"loadgen sql  # the questions that have a name\n"
        f"loadgen sql {place} by-namespace\n"
        f'loadgen sql {place} "SELECT r.group, count(*) FROM requests r GROUP BY r.group"'
    )
    return (
        f"<p>The tables of the run, as Parquet in its directory:</p><ul>{tables}</ul>"
        f"<pre>{examples}</pre>"
    )


def origin(run: Results) -> str:
    """Return HTML on what produced a run: the scenario, servers, versions and machine."""
    told = dict(run.run)
    told.pop("missed", None)  # Already among the findings.
    document, written, tasks = (told.pop(each, None) for each in ("document", "written", "tasks"))
    plain = f'<p class="hint">{escape(_PLAIN)}</p>'
    names = dict.fromkeys(name for task in tasks or () for name in task)
    own = [{name: task.get(name) for name in names} for task in tasks or ()]
    parts = {
        "The document, as written": written and f"<pre>{escape(str(written))}</pre>",
        "The document, as resolved": plain + table(flat(document or {})),
        "Servers, versions and machine": table(flat(told)),
        "What tasks tell of themselves": own and table(own, most=len(own)),
    }
    return "".join(folded(heading, body) for heading, body in parts.items() if body)


def beside(runs: Sequence[Results], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a table that compares runs: one row per figure, one column per run."""
    told: dict[tuple[str, Unit], dict[str, float]] = {}
    for run, label in zip(runs, labels, strict=True):
        summary = summary_of(run, verdict_of(run)).model_dump(mode="json")
        for figure, unit, value in figures_of(summary):
            told.setdefault((figure, unit), {})[label] = value
        for each, outcome in product(summary["splits"]["by-group-operation"], Outcome):
            told.setdefault((f"{each['part']} {outcome}", Unit.COUNT), {})[label] = each[outcome]
    rows = []
    for (figure, unit), values in told.items():
        noun = "clients" if figure.endswith(" back") else "requests"
        if any(values.values()):
            cells = {label: in_words(unit, values.get(label), noun) for label in labels}
            rows.append({"figure": figure, **cells})
    return rows


# -- tables and folds -----------------------------------------------------------------------------

_NOUNS = {
    **dict.fromkeys(map(str, Outcome), "requests"),
    "back": "clients",
    "rate": "of clients",
    "kinds": "answers",
}
"""Nouns of columns whose name is not the noun."""
_ITEMS_SHOWN = 5
"""Most items of a list shown: a run has hundreds of namespaces."""
_MOST_ROWS = 100
_LONG = 40
"""A text from this length on is wrapped between words; a shorter one stays on one line."""


def table(
    rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = (), most: int = _MOST_ROWS
) -> str:
    """Return rows as an HTML table; empty columns that ``hidden`` names are left out.

    A number in a column without a unit is a count; its noun is the column's name or is in the head.
    If there are many rows, only the first are shown.
    """
    if not rows:
        return "<p>None.</p>"
    heads, begins = [], {}
    for name, words in columns(rows, hidden).items():
        text = any(isinstance(row[name], str | datetime) for row in rows)
        cells = (cell(name, row[name]) for row in rows[:most])
        long = text and max(map(len, (words, *cells))) > _LONG
        css = f' class="text{" long" * long}"' if text else ""
        noun = f" <small>{_NOUNS[name]}</small>" if name in _NOUNS and not text else ""
        heads.append(f'<th scope="col"{css}>{escape(words)}{noun}</th>')
        begins[name] = f"<td{css}>"
    body = [
        "".join(f"{td}{escape(cell(name, row[name]))}</td>" for name, td in begins.items())
        for row in rows[:most]
    ]
    inner = (
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody><tr>{'</tr><tr>'.join(body)}</tr></tbody>"
    )
    more = len(rows) - most
    left = f'<p class="hint">{more:,} further rows are not shown.</p>' if more > 0 else ""
    return f'<div class="scroll"><table>{inner}</table></div>{left}'


def folded(summary: str, body: str, *, opened: bool = False) -> str:
    """Return HTML that a click on its summary line unfolds; ``body`` must be HTML."""
    return f"<details{' open' * opened}><summary>{escape(summary)}</summary>{body}</details>"


def flat(document: object) -> list[dict[str, str]]:
    """Return a JSON object as rows, each with a dotted path and a value as text.

    Of a long list only the first items are returned.
    """
    rows = []
    for name, value in paths(document, most=_ITEMS_SHOWN):
        text = value if isinstance(value, str) else json.dumps(value)
        endless = isinstance(value, float) and not math.isfinite(value)
        rows.append({"name": name, "value": "-" if endless else text})
    return rows
