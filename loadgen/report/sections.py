"""The sections of pages: charts and tables of runs by what they are about, as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from loadgen.report.axes import amount
from loadgen.report.drawing import render
from loadgen.report.html import flat, folded, table
from loadgen.report.run_charts import CHARTS
from loadgen.report.time_charts import operation_words
from loadgen.results.results import QUERIES
from loadgen.results.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.report.axes import Unit
    from loadgen.report.charts import Bars, Chart
    from loadgen.results.results import Results

_MOST_CHARTS = 12
"""Of one kind, on one page: a run may have ten operations, and a comparison ten runs of them."""
_SELDOM = ("refused", "wrong", "timeout", "disconnected", "unreachable", "bytes")
_SERVER_COLUMNS = {"first": "first", "last": "last", "most": "max", "rise": "rise"}
_FIGURES = ("requests", "answered", *_SELDOM[:-1], "p50", "p90", "p99", "p999", "max")
NOTE = """Response is from the moment a request was due until the last byte of its answer, service
from the moment it was sent. Who got no answer waited for ever: a percentile that falls among them
says never. Figures leave out the warm-up; charts over time show it shaded. One MB is 1,048,576
bytes, as in Pulsar's own configuration."""


def section(heading: str, body: str, hint: str = "") -> str:
    """Render a section; its body is HTML."""
    told = f'<p class="hint">{escape(hint)}</p>' if hint else ""
    return f"<section><h2>{escape(heading)}</h2>{told}{body}</section>"


def drawn(charts: Sequence[Chart | Bars]) -> str:
    """Render charts beside each other; nothing if there are none."""
    figures = "".join(f"<div>{render(each)}</div>" for each in charts[:_MOST_CHARTS])
    more = len(charts) - _MOST_CHARTS
    left = f'<p class="hint">{more} further charts are not shown.</p>' if more > 0 else ""
    return f'<div class="charts">{figures}</div>{left}' if figures else ""


def sections(
    runs: Sequence[Results], sections: Sequence[tuple[str, str, str, Sequence[str]]]
) -> list[str]:
    """Render the sections that have something: a heading, a hint, charts and tables by name."""
    found = []
    for heading, hint, chart, tables in sections:
        body = drawn(CHARTS[chart](runs)) if chart else ""
        if len(runs) == 1:
            body += "".join(_TABLES[name](runs[0]) for name in tables)
        if body:
            found.append(section(heading, body, hint))
    return found


RUN_SECTIONS = (
    ("Requests by group and operation", NOTE, "outcomes", ("figures", "answers")),
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
COMPARED_SECTIONS = tuple(each for each in RUN_SECTIONS if each[2])


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


def ask(run: Results) -> str:
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


def origin(run: Results) -> str:
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


def beside(runs: Sequence[Results], labels: Sequence[str]) -> list[dict[str, Any]]:
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
