"""One HTML file about a run, about several side by side, or about a sweep; it needs no network.

What a page of a run has follows from its tables: a section without rows is left out. No script is
needed, and there is none.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Protocol

from loadgen.errors import LoadgenError
from loadgen.report.drawing import sheet
from loadgen.report.html import folded, table
from loadgen.report.pictures import write_picture
from loadgen.report.run_charts import labels_of, title_of
from loadgen.report.sections import NOTE, ask, beside, origin, section, sections
from loadgen.results.files import made_by, survival
from loadgen.results.verdict import verdict_of
from loadgen.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.results.results import Results
    from loadgen.results.verdict import Finding, Verdict

PAGE_NAME = "index.html"
_SIGNS = {True: ("good", "✓"), False: ("bad", "✗")}
LARGEST_PAGE_BYTES = 4_000_000
_TEMPLATE = Template((files(__package__) / "page.html").read_text(encoding="utf-8"))


class Judgement(Protocol):
    """What a headline says: the verdict on a run, or that of a demo."""

    @property
    def fine(self) -> bool:
        """True if nothing failed."""

    @property
    def word(self) -> str:
        """It, in a few words."""

    @property
    def count(self) -> str:
        """How many checks failed."""


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
        *(f'<p class="lead">{escape(line)}</p>' for line in (survival(run),) if line),
        _checks(verdict),
        _expectations(verdict),
        *sections([run]),
        section("Ask it yourself", ask(run)),
        section("What produced it", origin(run)),
    ]
    return _page(title or title_of(run), body, verdict)


def comparison_page(
    runs: Sequence[Results],
    title: str | None = None,
    notes: Sequence[str] = (),
    judged: Judgement | None = None,
) -> str:
    """Return a page of runs side by side: figures in columns, the same charts overlaid.

    Args:
        runs: At least two, opened each for itself.
        title: Its heading.
        notes: Sentences at its top: what a comparison found.
        judged: What is said of all runs together, where something is.
    """
    labels = labels_of(runs)
    body = [f"<p>{escape(note)}</p>" for note in notes]
    for run, label in zip(runs, labels, strict=True):
        verdict = verdict_of(run)
        called = ", ".join(dict.fromkeys((label, title_of(run))))
        words = f"{called}: {verdict.word}, {verdict.count}"
        body.append(folded(words, _findings(_worst_first(verdict)), opened=not verdict.fine))
    body.append(section("Figures side by side", table(beside(runs, labels)), NOTE))
    body += sections(runs)
    for run, label in zip(runs, labels, strict=True):
        body.append(folded(f"What produced it: {label}", origin(run)))
    return _page(title or " beside ".join(labels[:3]), body, judged)


def _page(title: str, body: Sequence[str], judged: Judgement | None) -> str:
    """Return a page, whose headline is the verdict where there is one."""
    style, headline = sheet("report.css") + sheet("chart.css"), f"<h1>{escape(title)}</h1>"
    if judged is not None:
        words = escape(f"{judged.word[0].upper()}{judged.word[1:]}: {judged.count}")
        css, mark = _SIGNS[judged.fine]
        headline = f'<p class="what">{escape(title)}</p><h1 class="{css}">{mark} {words}</h1>'
    told = {"title": escape(title), "headline": headline, "style": style}
    return _TEMPLATE.substitute(told, body="\n".join(body))


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


def _checks(verdict: Verdict) -> str:
    """Render the findings: those that failed stand apart from those that hold."""
    failed = [each for each in _worst_first(verdict) if not each.fine]
    held = [each for each in verdict.findings if each.fine]
    apart = f'<section class="failed"><h2>Failed</h2>{_findings(failed)}</section>'
    words = f"What holds: {plural(len(held), 'check')}"
    rest = folded(words, _findings(held), opened=not failed) if held else ""
    return apart * bool(failed) + rest


def _worst_first(verdict: Verdict) -> list[Finding]:
    return sorted(verdict.findings, key=lambda each: -each.level.rank)


def _findings(findings: Sequence[Finding]) -> str:
    items = []
    for each in findings:
        css, mark = _SIGNS[each.fine]
        told = each.sentence.startswith(each.source)
        source = "" if told else f" <small>{escape(each.source)}</small>"
        sign = f'<span class="sign {css}">{mark}</span>'
        items.append(f"<li>{sign}{escape(each.sentence)}{source}</li>")
    return f'<ul class="findings">{"".join(items)}</ul>'


def _expectations(verdict: Verdict) -> str:
    """Render what was expected beside what was found, the missed first."""
    rows = [
        {
            "expectation": each.expectation.text,
            "holds": each.holds,
            "found": "-" if each.value is None else each.found,
        }
        for each in sorted(verdict.judged, key=lambda each: each.holds)
    ]
    return section("Expectations", table(rows)) if rows else ""
