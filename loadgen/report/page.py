"""HTML pages on one run or on several side by side, and SVG pictures of their charts.

A page is an HTML file without scripts that needs no network; a picture is an SVG file. The
sections of a page depend on the tables of the run: a section without rows is left out.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError, UsageError, write_text
from loadgen.report.drawing import picture, sheet
from loadgen.report.run_charts import CHARTS, labels_of, title_of
from loadgen.report.sections import (
    NOTE,
    ask,
    beside,
    folded,
    origin,
    section,
    sections,
    table,
)
from loadgen.results.files import made_by, survival, write_files
from loadgen.results.verdict import verdict_of
from loadgen.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.charts import Bars, Chart
    from loadgen.results.results import Results
    from loadgen.results.verdict import Finding, Verdict

PAGE_NAME = "index.html"
_SIGNS = {True: ("good", "✓"), False: ("bad", "✗")}
LARGEST_PAGE_BYTES = 4_000_000
_TEMPLATE = Template((files(__package__) / "page.html").read_text(encoding="utf-8"))


def write_page(path: Path, page: str) -> None:
    """Write an HTML page to a file.

    Raises:
        LoadgenError: The file cannot be written, or is larger than a browser shows at once.
    """
    size = len(page.encode())
    if size > LARGEST_PAGE_BYTES:
        raise LoadgenError(
            f"the page {path} would have {format_bytes(size)}; name fewer run directories"
        )
    write_text(path, page)


def write_run(run: Results) -> Verdict:
    """Judge a finished run, and write its HTML page and all other files derived from its tables.

    Raises:
        UsageError: An expectation of the document cannot be understood.
        LoadgenError: A file cannot be written.
    """
    verdict = write_files(run)
    write_page(run.directory / PAGE_NAME, run_page(run))
    return verdict


def run_page(run: Results, title: str | None = None) -> str:
    """Return the HTML page on one run; all texts that come from the run are escaped."""
    verdict = verdict_of(run)
    leads = filter(None, (_lead(run), survival(run)))
    body = [
        *(f'<p class="lead">{escape(line)}</p>' for line in leads),
        _checks(verdict),
        *sections([run]),
        section("Ask it yourself", ask(run)),
        section("What produced it", origin(run)),
    ]
    judged = verdict.fine, f"{verdict.word}: {verdict.count}"
    return _page(title or title_of(run), body, judged)


def comparison_page(
    runs: Sequence[Results],
    title: str | None = None,
    notes: Sequence[str] = (),
    judged: tuple[bool, str] | None = None,
) -> str:
    """Return an HTML page that compares runs: a table with a column for each, overlaid charts.

    Args:
        runs: At least two runs, each opened alone.
        title: The heading of the page.
        notes: Sentences at the top, such as the results of a comparison.
        judged: Whether all runs together are fine, and a sentence on that; None without a verdict.
    """
    labels = labels_of(runs)
    body = [f"<p>{escape(note)}</p>" for note in notes]
    for run, label in zip(runs, labels, strict=True):
        verdict = verdict_of(run)
        called = ", ".join(dict.fromkeys((label, title_of(run))))
        words = f"{called}: {verdict.word}, {verdict.count}"
        body.append(folded(words, _findings(verdict.worst_first), opened=not verdict.fine))
    body.append(section("Figures side by side", table(beside(runs, labels)), NOTE))
    body += sections(runs)
    for run, label in zip(runs, labels, strict=True):
        body.append(folded(f"What produced it: {label}", origin(run)))
    return _page(title or " beside ".join(labels[:3]), body, judged)


def _page(title: str, body: Sequence[str], judged: tuple[bool, str] | None) -> str:
    """Return a whole HTML page; its headline is the verdict, or the title without a verdict."""
    style, headline = sheet("report.css") + sheet("chart.css"), f"<h1>{escape(title)}</h1>"
    if judged is not None:
        fine, words = judged
        css, mark = _SIGNS[fine]
        said = escape(f"{words[0].upper()}{words[1:]}")
        headline = f'<p class="what">{escape(title)}</p><h1 class="{css}">{mark} {said}</h1>'
    told = {"title": escape(title), "headline": headline, "style": style}
    return _TEMPLATE.substitute(told, body="\n".join(body))


def _lead(run: Results) -> str:
    """Return the opening words on a run: its description, clients, requests, start and place."""
    told = " ".join(str(run.document.get("description") or "").split())
    where = str(run.run.get("place") or "")
    facts = [
        made_by(run),
        str(run.run.get("started_at") or "")[:16].replace("T", " "),
        "in virtual time" if where == "virtual" else where,
        str(run.run.get("server_version") or ""),
    ]
    return f"{told} {', '.join(filter(None, facts))}.".strip()


def _checks(verdict: Verdict) -> str:
    """Return the findings of a verdict as HTML: the failed checks first, then the passed ones."""
    failed, held = verdict.failed, [each for each in verdict.findings if each.fine]
    apart = f'<section class="failed"><h2>Failed</h2>{_findings(failed)}</section>'
    words = f"What holds: {plural(len(held), 'check')}"
    rest = folded(words, _findings(held), opened=not failed) if held else ""
    return apart * bool(failed) + rest


def _findings(findings: Sequence[Finding]) -> str:
    items = []
    for each in findings:
        css, mark = _SIGNS[each.fine]
        told = each.sentence.startswith(each.source)
        source = "" if told else f" <small>{escape(each.source)}</small>"
        sign = f'<span class="sign {css}">{mark}</span>'
        items.append(f"<li>{sign}{escape(each.sentence)}{source}</li>")
    return f'<ul class="findings">{"".join(items)}</ul>'


# -- pictures -------------------------------------------------------------------------------------


def picture_of(runs: Sequence[Results], names: Sequence[str], columns: int = 2) -> str:
    """Return the charts of the given names as one SVG file, for one run or several overlaid runs.

    Args:
        runs: One run, or several runs to overlay.
        names: Kinds of charts, such as ``servers``, or single charts, such as ``servers.resident``.
        columns: The number of charts beside each other.

    Raises:
        UsageError: No chart has that name, or the chart has no data in these runs.
    """
    drawn: list[Chart | Bars] = []
    for name in names:
        kind, _, key = name.partition(".")
        if kind not in CHARTS:
            raise UsageError(f"there is no chart {kind[:80]}: name one of {', '.join(CHARTS)}")
        found = list(CHARTS[kind](runs))
        known = ", ".join(f"{kind}.{each.key}" for each in found if each.key) or "none"
        found = [each for each in found if key in ("", each.key)]
        if not found:
            raise UsageError(f"these runs have nothing for the chart {name[:80]}; there is {known}")
        drawn += found
    return picture(drawn, columns)
