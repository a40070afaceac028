"""One HTML file about a run, about several side by side, or about a sweep; it needs no network.

What a page of a run has follows from its tables: a section without rows is left out. No script is
needed, and there is none.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError
from loadgen.report.drawing import sheet
from loadgen.report.html import folded, table
from loadgen.report.pictures import write_picture
from loadgen.report.run_charts import labels_of, title_of
from loadgen.report.sections import NOTE, ask, beside, origin, section, sections
from loadgen.results.files import made_by
from loadgen.results.verdict import verdict_of
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.results.results import Results
    from loadgen.results.verdict import Finding, Verdict

PAGE_NAME = "index.html"
LARGEST_PAGE_BYTES = 4_000_000
_TEMPLATE = Template((files(__package__) / "page.html").read_text(encoding="utf-8"))


def write_page(path: Path, page: str) -> None:
    """Write a page.

    Raises:
        LoadgenError: It cannot be written, or is larger than a browser shows at once.
    """
    size = len(page.encode())
    if size > LARGEST_PAGE_BYTES:
        raise LoadgenError(
            f"the page {path} would have {format_bytes(size)}; name fewer run directories"
        )
    write_picture(path, page)


def run_page(run: Results, title: str | None = None) -> str:
    """Return the page of one run. Everything that comes from its directory is escaped."""
    verdict = verdict_of(run)
    body = [
        f'<p class="lead">{escape(_lead(run))}</p>',
        _verdict(verdict),
        *sections([run]),
        section("Ask it yourself", ask(run)),
        section("What produced it", origin(run)),
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
        called = ", ".join(dict.fromkeys((label, title_of(run))))
        words = f"{called}: {verdict.word}, {verdict.count}"
        body.append(folded(words, _findings(verdict), opened=not verdict.fine))
    body.append(section("Figures side by side", table(beside(runs, labels)), NOTE))
    body += sections(runs)
    for run, label in zip(runs, labels, strict=True):
        body.append(folded(f"What produced it: {label}", origin(run)))
    return _page(title or " beside ".join(labels[:3]), body)


def _page(title: str, body: Sequence[str]) -> str:
    style = sheet("report.css") + sheet("chart.css")
    return _TEMPLATE.substitute(title=escape(title), style=style, body="\n".join(body))


def _lead(run: Results) -> str:
    """Say what ran, where and when."""
    told = " ".join(str(run.document.get("description") or "").split())
    where = str(run.run.get("place") or "")
    facts = [
        made_by(run),
        str(run.run.get("started_at") or "")[:16].replace("T", " "),
        "in virtual time" if where == "virtual" else where,
        str(run.run.get("server_version") or ""),
    ]
    return f"{told} {', '.join(filter(None, facts))}.".strip()


def _verdict(verdict: Verdict) -> str:
    words = f"{verdict.word[0].upper()}{verdict.word[1:]}: {verdict.count}"
    return (
        f'<section><p class="verdict">{_sign(verdict)} {escape(words)}</p>'
        f"{_findings(verdict)}{_expectations(verdict)}</section>"
    )


def _sign(found: Finding | Verdict) -> str:
    css, sign = ("good", "✓") if found.fine else ("bad", "✗")
    return f'<span class="sign {css}">{sign}</span>'


def _findings(verdict: Verdict) -> str:
    """Render all findings, the worst first."""
    items = []
    for each in sorted(verdict.findings, key=lambda each: -each.level.rank):
        told = each.sentence.startswith(each.source)
        source = "" if told else f" <small>{escape(each.source)}</small>"
        items.append(f"<li>{_sign(each)}{escape(each.sentence)}{source}</li>")
    return f'<ul class="findings">{"".join(items)}</ul>'


def _expectations(verdict: Verdict) -> str:
    rows = [
        {
            "expectation": each.expectation.text,
            "holds": each.holds,
            "found": "-" if each.value is None else each.found,
        }
        for each in verdict.judged
    ]
    return f"<h2>Expectations</h2>{table(rows)}" if rows else ""
