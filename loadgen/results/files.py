"""Writes what is made of a run's tables: summary, checks for pipelines, a page for pull requests.

The tables alone decide these files: written again, they are the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from loadgen.errors import LoadgenError
from loadgen.results.expectations import in_words
from loadgen.results.measures import Unit
from loadgen.results.summary import summary_of
from loadgen.results.verdict import verdict_of
from loadgen.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadgen.results.results import Results
    from loadgen.results.summary import Percentiles, Summary
    from loadgen.results.verdict import Verdict

_NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})
_SERVER_FIGURES = ("heap.used", "direct.used", "resident", "unread", "cpu.seconds")
_MOST_ROWS = 40


def write_files(results: Results) -> Verdict:
    """Judge a run and write every file that its tables decide; return the verdict.

    Raises:
        UsageError: Its document expects something that cannot be understood.
        LoadgenError: A file cannot be written.
    """
    verdict = verdict_of(results)
    summary = summary_of(results, verdict)
    document = summary.model_dump(mode="json")
    contents = {
        "summary.json": json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "summary.csv": csv_of(document),
        "junit.xml": junit_of(summary, verdict),
        "README.md": readme_of(summary, verdict),
    }
    try:
        for name, content in contents.items():
            (results.directory / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise LoadgenError(f"{results.directory} cannot be written: {error.strerror}") from error
    return verdict


def csv_of(document: dict[str, Any]) -> str:
    """Return every figure of a summary as ``run,figure,value``, named as its place in JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "figure", "value"))
    writer.writerows((document["run"], name, value) for name, value in _figures(document))
    return out.getvalue()


def _figures(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield what is at the end of each path; what nobody measured is empty."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            yield from _figures(each, f"{name}.{key}" if name else str(key))
    else:
        yield name, "" if value is None else value


def junit_of(summary: Summary, verdict: Verdict) -> str:
    """Return ``junit.xml``: a test case for each finding, those that are not fine failed."""
    failed = sum(not each.fine for each in verdict.findings)
    counts = {
        "tests": str(len(verdict.findings)),
        "failures": str(failed),
        "errors": "0",
        "time": f"{summary.duration_seconds:.3f}",
    }
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": f"loadgen {_xml(summary.name)}", **counts})
    expected = {each.expectation.text for each in verdict.judged}
    for each in verdict.findings:
        kind = "expectations" if each.source in expected else "run"
        named = {"classname": f"{_xml(summary.name)}.{kind}", "name": _xml(each.source)}
        case = SubElement(suite, "testcase", named)
        if each.fine:
            SubElement(case, "system-out").text = _xml(each.sentence)
        else:
            said = {"type": each.level.name.lower(), "message": _xml(each.sentence)}
            SubElement(case, "failure", said)
    indent(suites)
    declared: str = tostring(suites, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{declared}\n"


def _xml(text: str) -> str:
    """Return a text that XML can hold: without control characters."""
    return _NOT_XML.sub(" ", text)


def readme_of(summary: Summary, verdict: Verdict) -> str:
    """Return ``README.md`` of a run; what comes from its directory is escaped."""
    title = summary.title.rstrip(".") or summary.name
    findings = sorted(verdict.findings, key=lambda each: -each.level.rank)
    rows = [
        (
            each.part,
            f"{each.requests:,}",
            f"{each.answered:,}",
            f"{each.refused:,}",
            f"{each.wrong:,}",
            f"{each.timeout + each.disconnected + each.unreachable:,}",
            *_times(each.response_seconds),
        )
        for each in [summary.total, *summary.splits["by-group-operation"][:_MOST_ROWS]]
    ]
    back = [
        (f"{each.group}", f"{each.back:,} of {each.clients:,}", *_times(each.back_seconds))
        for each in summary.back[:_MOST_ROWS]
    ]
    reasons = [(each.outcome, each.reason, f"{each.requests:,}") for each in summary.reasons[:10]]
    facts = {
        "scenario": summary.name,
        "servers": summary.server_version or "",
        "place": summary.place,
        "started": summary.started_at,
    }
    lines = [
        f"# {'✓' if verdict.fine else '✗'} {_plain(title)}: {verdict.word}",
        "",
        f"{plural(summary.total.requests, 'request')} of {plural(summary.clients, 'client')} in "
        f"{summary.duration_seconds:,.1f} s. Exit code {int(verdict.exit_code)}.",
        "",
        *_section("Not answered", ("outcome", "reason", "requests"), reasons),
        f"## Checks: {verdict.count}",
        "",
        *_table(("", ""), [("✓" if each.fine else "✗", each.sentence) for each in findings]),
        *_section(
            "Requests",
            ("", "due", "answered", "refused", "wrong", "lost", "p50", "p99", "max"),
            rows,
        ),
        *_section("Clients that were back", ("group", "back", "p50", "p99", "max"), back),
        *_section("Servers", ("", "at first", "at most", "at the end"), list(_servers(summary))),
        *_section("What produced this", ("", ""), [each for each in facts.items() if each[1]]),
        "`index.html` shows all of it over time and needs no network; `summary.json` has every",
        "figure, `loadgen sql` asks the tables beside it.",
    ]
    return "\n".join(lines) + "\n"


def _times(found: Percentiles | None) -> tuple[str, ...]:
    """Return percentiles in words; of a row that is there, what is no number was never."""
    if found is None:
        return ("", "", "")
    values = (found.p50, found.p99, found.max)
    return tuple(in_words(Unit.SECONDS, math.inf if x is None else x) for x in values)


def _servers(summary: Summary) -> Iterator[tuple[str, ...]]:
    for name, server in sorted(summary.servers.items()):
        for key in _SERVER_FIGURES:
            figure = server.figures.get(key)
            if figure is not None:
                shown = (figure.first, figure.max, figure.last)
                words = format_bytes if key != "cpu.seconds" else "{:.2f} s".format
                yield (f"{name} {key}", *("" if x is None else words(x) for x in shown))


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from (f"## {title}", "", *_table(heads, rows))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"
    yield ""


def _plain(text: str) -> str:
    return text.translate(_SPECIAL)
