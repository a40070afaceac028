"""One HTML file about a run, about several side by side, or about a sweep; it needs no network.

What a page of a run has follows from its tables: a section without rows is left out. No script is
needed, and there is none.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.report.axes import amount
from loadgen.report.charts import render
from loadgen.report.html import flat, folded, table
from loadgen.report.run_charts import CHARTS, labels_of, operation_words, title_of
from loadgen.report.style import page_style
from loadgen.results.expectations import in_words
from loadgen.results.results import QUERIES
from loadgen.results.tables import TABLES
from loadgen.results.verdict import Level, verdict_of
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadgen.report.axes import Unit
    from loadgen.report.charts import Bars, Chart
    from loadgen.results.results import Results
    from loadgen.results.verdict import Verdict

PAGE_NAME = "index.html"
LARGEST_PAGE_BYTES = 4_000_000
_MOST_CHARTS = 12
"""Of one kind, on one page: a run may have ten operations, and a comparison ten runs of them."""
_SELDOM = ("refused", "wrong", "timeout", "disconnected", "unreachable", "bytes")
_SIGNS = {
    Level.FINE: ("good", "✓"),
    Level.MISSED: ("bad", "✗"),
    Level.UNRELIABLE: ("bad", "?"),
    Level.INTERRUPTED: ("bad", "!"),
    Level.WRONG: ("bad", "✗"),
}
_SERVER_COLUMNS = {"first": "first", "last": "last", "most": "max", "rise": "rise"}
_FIGURES = ("requests", "answered", *_SELDOM[:-1], "p50", "p90", "p99", "p999", "max")
_SWITCH = """<form class="switch" aria-label="Colours">Colours:
<label><input type="radio" name="colours" checked> of the system</label>
<label><input type="radio" name="colours" id="light"> light</label>
<label><input type="radio" name="colours" id="dark"> dark</label></form>"""
_NOTE = """Response is from the moment a request was due until the last byte of its answer, service
from the moment it was sent. Who got no answer waited for ever: a percentile that falls among them
says never. Figures leave out the warm-up; charts over time show it shaded. One MB is 1,048,576
bytes, as in Pulsar's own configuration."""


def write_page(path: Path, page: str) -> None:
    """Write a page.

    Raises:
        LoadgenError: It cannot be written, or is larger than a browser shows at once.
    """
    data = page.encode()
    if len(data) > LARGEST_PAGE_BYTES:
        raise LoadgenError(
            f"the page {path} would have {format_bytes(len(data))}; name fewer run directories"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise LoadgenError(
            f"cannot write the page {path}: {error.strerror}; choose another --out"
        ) from error


def run_page(run: Results, title: str | None = None) -> str:
    """Return the page of one run. Everything that comes from its directory is escaped."""
    verdict = verdict_of(run)
    body = [
        f'<p class="lead">{escape(_lead(run))}</p>',
        _verdict(verdict),
        *_sections([run], _RUN_SECTIONS),
        _section("Ask it yourself", _ask(run)),
        _section("What produced it", _origin(run)),
    ]
    return _page(title or title_of(run), body)


def comparison_page(
    runs: Sequence[Results], title: str | None = None, notes: Sequence[str] = ()
) -> str:
    """Return a page of runs side by side: figures in columns, the same charts overlaid.

    Args:
        runs: At least two, opened each for itself.
        title: Its heading.
        notes: Sentences at its top: what a comparison found.
    """
    labels = labels_of(runs)
    body = [f"<p>{escape(note)}</p>" for note in notes]
    for run, label in zip(runs, labels, strict=True):
        verdict = verdict_of(run)
        words = f"{label}: {verdict.word}, {verdict.count}"
        body.append(folded(words, _findings(verdict), opened=not verdict.fine))
    body.append(_section("Figures side by side", table(_beside(runs, labels)), _NOTE))
    body += _sections(runs, _COMPARED_SECTIONS)
    for run, label in zip(runs, labels, strict=True):
        body.append(folded(f"What produced it: {label}", _origin(run)))
    return _page(title or " beside ".join(labels[:3]), body)


def sweep_page(title: str, charts: Sequence[Chart], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a page of figures against what was varied: charts, and the table they are of."""
    return _page(title, [_drawn(charts), _section("All points", table(rows))])


def charts_page(title: str, drawn: Sequence[tuple[str, Sequence[Chart | Bars]]]) -> str:
    """Return a page of charts that somebody else has, in sections by their headings."""
    return _page(title, [_section(heading, _drawn(charts)) for heading, charts in drawn])


# -- the parts of a page --------------------------------------------------------------------------


def _page(title: str, body: Sequence[str]) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{page_style()}</style>
</head>
<body>
<header>{_SWITCH}<h1>{escape(title)}</h1></header>
<main>
{chr(10).join(body)}
</main>
<footer>Made by <code>loadgen report</code> from run directories; it needs no network.</footer>
</body>
</html>
"""


def _section(heading: str, body: str, hint: str = "") -> str:
    told = f'<p class="hint">{escape(hint)}</p>' if hint else ""
    return f"<section><h2>{escape(heading)}</h2>{told}{body}</section>"


def _drawn(charts: Sequence[Chart | Bars]) -> str:
    figures = "".join(f"<div>{render(each)}</div>" for each in charts[:_MOST_CHARTS])
    more = len(charts) - _MOST_CHARTS
    left = f'<p class="hint">{more} further charts are not shown.</p>' if more > 0 else ""
    return f'<div class="charts">{figures}</div>{left}' if figures else ""


def _lead(run: Results) -> str:
    """Say what ran, where and when."""
    count = run.value("SELECT count(*) FROM requests")
    clients = run.value("SELECT count(DISTINCT client) FROM requests")
    until = run.value("SELECT max(done) FROM requests") or 0.0
    told = " ".join(str(run.document.get("description") or "").split())
    where = str(run.run.get("place") or "")
    facts = [
        f"{clients:,} clients made {count:,} requests in {amount(until, 'seconds')}",
        str(run.run.get("started_at") or "")[:16].replace("T", " "),
        "in virtual time" if where == "virtual" else where,
        str(run.run.get("server_version") or ""),
    ]
    return f"{told} {', '.join(filter(None, facts))}.".strip()


def _verdict(verdict: Verdict) -> str:
    css, sign = _SIGNS[verdict.level]
    words = f"{verdict.word[0].upper()}{verdict.word[1:]}: {verdict.count}"
    return (
        f'<section><p class="verdict"><span class="{css}">{sign}</span> {escape(words)}</p>'
        f"{_findings(verdict)}{_expectations(verdict)}</section>"
    )


def _findings(verdict: Verdict) -> str:
    """Render all findings, the worst first."""
    items = []
    for each in sorted(verdict.findings, key=lambda each: -each.level.rank):
        css, sign = _SIGNS[each.level]
        items.append(
            f'<li><span class="sign {css}">{sign}</span>{escape(each.sentence)} '
            f"<small>{escape(each.source)}</small></li>"
        )
    return f'<ul class="findings">{"".join(items)}</ul>'


def _expectations(verdict: Verdict) -> str:
    rows = [
        {
            "expectation": each.expectation.text,
            "holds": each.holds,
            "found": "-"
            if each.value is None
            else in_words(each.expectation.measure.unit, each.value),
        }
        for each in verdict.judged
    ]
    return f"<h2>Expectations</h2>{table(rows)}" if rows else ""


def _sections(
    runs: Sequence[Results], sections: Sequence[tuple[str, str, str, Sequence[str]]]
) -> list[str]:
    """Render the sections that have something: a heading, a hint, charts and tables by name."""
    found = []
    for heading, hint, chart, tables in sections:
        body = _drawn(CHARTS[chart](runs)) if chart else ""
        if len(runs) == 1:
            body += "".join(_TABLES[name](runs[0]) for name in tables)
        if body:
            found.append(_section(heading, body, hint))
    return found


_RUN_SECTIONS = (
    ("Requests by group and operation", _NOTE, "outcomes", ("figures", "answers")),
    ("Requests over time", "", "requests", ()),
    (
        "Each request",
        "Of many the slowest of each moment. Rings got no answer.",
        "each",
        (),
    ),
    ("How long they waited", "A line ends where the rest never got an answer.", "distribution", ()),
    (
        "Who came back",
        "When clients had all they came for, counted from the moment each was to start.",
        "back",
        ("back", "events"),
    ),
    ("Requests without an answer", "", "refusals", ("reasons",)),
    ("The servers", "Dashed lines are limits.", "servers", ("servers",)),
    ("Slowest requests", "", "", ("tails",)),
    ("Namespaces", "", "namespaces", ()),
)
_COMPARED_SECTIONS = tuple(each for each in _RUN_SECTIONS if each[2])


def _figures(run: Results) -> str:
    rows = [
        {"group": group, "operation": operation, **rest}
        for row in run.query("by-group-operation")
        for group, _, operation in [str(row["part"]).rpartition(".")]
        for rest in [{name: value for name, value in row.items() if name != "part"}]
    ]
    return table(rows, _SELDOM) if rows else ""


def _asked(name: str, hidden: Sequence[str] = ()) -> Callable[[Results], str]:
    """Return what renders a shipped question with its words; nothing where it has no rows."""

    def rendered(run: Results) -> str:
        rows = run.query(name)
        return f"<p>{escape(QUERIES[name].title)}</p>{table(rows, hidden)}" if rows else ""

    return rendered


def _back(run: Results) -> str:
    some = any(each.get("do") == "discover" for each in run.document.get("clients", ()))
    some = some or run.value("SELECT count(*) FROM events WHERE what = 'back'") > 0
    return _asked("back")(run) if some else ""


def _events(run: Results) -> str:
    rows = run.sql(
        "SELECT e.group AS group, e.what, e.text, count(*) AS events, "
        "min(e.seconds) AS first_seconds, max(e.seconds) AS last_seconds, max(e.value) AS most "
        "FROM events e "
        "WHERE e.what <> 'back' GROUP BY e.group, e.what, e.text ORDER BY e.group, e.what, e.text "
        "LIMIT 100"
    )
    return folded("Whatever else clients told", table(rows, ("text", "most"))) if rows else ""


def _servers(run: Results) -> str:
    """Render every figure of the servers, folded: what has a chart, and what has none."""
    rows = run.query("servers")
    texts = [
        {
            "process": row["process"],
            "figure": row["figure"],
            **{
                words: _server_value(row["figure"], row[name])
                for words, name in _SERVER_COLUMNS.items()
            },
        }
        for row in rows
    ]
    return folded(f"All {len(rows):,} figures of the servers", table(texts)) if rows else ""


def _server_value(figure: str, value: float) -> str:
    sized = figure.startswith(("heap.", "direct.", "resident", "unread", "jvm.", "process_"))
    counted = figure.endswith(("waiting", "waiting.limit", "timeouts"))
    if (sized and not counted and "fds" not in figure) or "_bytes" in figure:
        return amount(value, "bytes")
    return amount(value, "seconds" if "seconds" in figure else "number")


_TABLES: dict[str, Callable[[Results], str]] = {
    "figures": _figures,
    "answers": _asked("answers"),
    "back": _back,
    "events": _events,
    "reasons": _asked("reasons"),
    "servers": _servers,
    "tails": _asked("tails", ("family", "item")),
}


def _ask(run: Results) -> str:
    """Show the tables with all columns, and each shipped question with its SQL."""
    place = run.directory
    columns = "".join(
        f"<li><code>{name}</code>: <code>{', '.join(schema.names)}</code></li>"
        for name, schema in TABLES.items()
    )
    examples = escape(
        f"loadgen sql {place} by-namespace\n"
        f'loadgen sql {place} "SELECT r.group, count(*) FROM requests r GROUP BY r.group"'
    )
    questions = "".join(
        folded(f"{name}: {query.title}", f"<pre>{escape(query.sql)}</pre>")
        for name, query in QUERIES.items()
    )
    return (
        f"<p>The tables of the run, as Parquet in its directory:</p><ul>{columns}</ul>"
        f"<pre>{examples}</pre>{folded('The questions that have a name, as SQL', questions)}"
    )


def _origin(run: Results) -> str:
    """Show the document as it was written and as resolved, servers, versions and machine."""
    told = dict(run.run)
    document, written = told.pop("document", None) or {}, told.pop("written", None)
    tasks = told.pop("tasks", None) or []
    return "".join(
        (
            folded("The document, as written", f"<pre>{escape(str(written))}</pre>")
            if written
            else "",
            folded("The document, as resolved", table(flat(document))),
            folded("Servers, versions and machine", table(flat(told))),
            folded(
                "What tasks tell of themselves",
                table(flat({str(n): t for n, t in enumerate(tasks)})),
            )
            if tasks
            else "",
        )
    )


# -- side by side ---------------------------------------------------------------------------------


def _beside(runs: Sequence[Results], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each figure of each group and operation, with a column for each run."""
    told = [{row["part"]: row for row in run.query("by-group-operation")} for run in runs]
    peaks = [
        {(row["process"], row["figure"]): row["max"] for row in run.query("servers")}
        for run in runs
    ]
    rows: list[dict[str, Any]] = []
    for part in dict.fromkeys(part for each in told for part in each):
        group, _, operation = str(part).rpartition(".")
        for name in _FIGURES:
            values = [each.get(part, {}).get(name) for each in told]
            if name in _SELDOM and not any(values):
                continue
            unit: Unit = "count" if name in ("requests", "answered", *_SELDOM) else "seconds"
            words = [amount(value, unit) for value in values]
            about = f"{group}: {operation_words(operation)}"
            rows.append({"_of": about, "_figure": name, **dict(zip(labels, words, strict=True))})
    for key in dict.fromkeys(key for each in peaks for key in each):
        process, figure = key
        if figure in ("resident", "heap.used", "direct.used", "unread"):
            words = [amount(each.get(key), "bytes") for each in peaks]
            rows.append(
                {
                    "_of": process,
                    "_figure": f"most {figure}",
                    **dict(zip(labels, words, strict=True)),
                }
            )
    return rows
