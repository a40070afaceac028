"""The files derived from a run's tables: summary.json, summary.csv, junit.xml, README.md.

The files depend only on the tables: a file that is written again has the same bytes.
"""

from __future__ import annotations

import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from loadgen.jvm_options import JVM_OPTIONS
from loadgen.results.asking import Rows, as_csv
from loadgen.results.summary import summary_of
from loadgen.results.units import (
    SELDOM,
    Unit,
    cell,
    columns,
    in_words,
    markdown_table,
    paths,
    plain,
)
from loadgen.results.verdict import verdict_of
from loadgen.results.vocabulary import limit_of, of_server
from loadgen.stored import write_whole
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.results.results import Results
    from loadgen.results.summary import Summary
    from loadgen.results.verdict import Finding, Verdict

_NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SERVER_FIGURES = (
    *("heap.used", "direct.used", "jvm.heap.used", "jvm.direct.used"),
    *("resident", "unread", "cpu.seconds"),
)
_MOST_ROWS = 40


def write_files(results: Results) -> Verdict:
    """Judge a run, and write the files derived from its tables; return the verdict.

    Raises:
        UsageError: An expectation of the document cannot be understood.
        LoadgenError: A file cannot be written.
    """
    verdict = verdict_of(results)
    summary = summary_of(results, verdict)
    document = summary.model_dump(mode="json")
    contents = {
        "summary.json": json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "summary.csv": csv_of(document),
        "junit.xml": junit_of(summary, verdict),
        "README.md": readme_of(results, summary, verdict),
    }
    for name, content in contents.items():
        write_whole(results.directory / name, content)
    return verdict


def csv_of(document: dict[str, Any]) -> str:
    """Format a run's summary as CSV lines ``run,figure,value``; ``figure`` is its JSON path.

    A figure that was not measured has an empty value.
    """
    told = ((name, "" if value is None else value) for name, value in paths(document))
    return as_csv(Rows(("run", "figure", "value"), [(document["run"], *each) for each in told]))


def junit_of(summary: Summary, verdict: Verdict) -> str:
    """Return the text of ``junit.xml``, which has a test case for each finding of the verdict."""
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
            said = {"type": each.level, "message": _xml(each.sentence)}
            SubElement(case, "failure", said)
    indent(suites)
    declared: str = tostring(suites, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{declared}\n"


def _xml(text: str) -> str:
    """Replace each control character that XML forbids by a space."""
    return _NOT_XML.sub(" ", text)


def readme_of(results: Results, summary: Summary, verdict: Verdict) -> str:
    """Return the text of a run's ``README.md``; all texts that come from the run are escaped."""
    servers = [row for row in results.query("servers") if row["figure"] in _SERVER_FIGURES]
    servers.sort(key=lambda row: (row["process"], _SERVER_FIGURES.index(row["figure"])))
    parts = sorted(results.query("by-group-operation"), key=lambda row: -row["requests"])
    facts = {
        "scenario": summary.name,
        "servers": summary.server_version,
        "place": summary.place,
        "started": summary.started_at,
    }
    tables: dict[str, list[dict[str, Any]]] = {
        "Not answered": results.query("reasons", most=10),
        "Requests": [*results.query("all"), *parts],
        "Clients that were back": results.query("back"),
        "Servers": [of_server(row) for row in servers],
        "What produced this": [{"part": key, "value": each} for key, each in facts.items() if each],
    }
    title = plain(summary.title.rstrip(".") or summary.name)
    lines = [
        f"# {_sign(verdict)} {title}: {verdict.word}",
        "",
        f"{made_by(results)}. Exit code of `loadgen run`: {int(verdict.exit_code)}.",
        "",
        *(f"{plain(line)}\n" for line in (survival(results),) if line),
        f"## {verdict.count[0].upper()}{verdict.count[1:]}",
        "",
        *(f"- {_sign(each)} {plain(each.sentence)}" for each in verdict.worst_first),
        "",
        *(line for heading, rows in tables.items() if rows for line in _section(heading, rows)),
        "`index.html` shows all of it over time and needs no network; `summary.json` has every",
        "figure, `loadgen sql` asks the tables beside it.",
    ]
    return "\n".join(lines) + "\n"


def made_by(results: Results) -> str:
    """Return words on the number of clients and requests in a run, and on its seconds."""
    clients = sum(row["clients"] for row in results.query("back"))
    count = sum(row["requests"] for row in results.query("all"))
    early = results.value(
        "SELECT count(*) FROM requests WHERE due < (SELECT min(measured_from) FROM runs)"
    )
    more = f" ({early:,} more in the warm-up)" if early else ""
    made = f"{plural(clients, 'client')} made {plural(count, 'request')}"
    return f"{made}{more} in {results.ended:,.1f} s"


def survival(results: Results) -> str:
    """Return a sentence on the share of answered requests and the JVM memory used meanwhile.

    A broker that refuses no request and runs out of memory has not passed.
    """
    told = {(row["process"], row["figure"]): row["max"] for row in results.query("servers")}
    total, servers = next(iter(results.query("all")), None), dict[str, list[str]]()
    for process, (memory, option) in product(
        sorted({each for each, _ in told}), JVM_OPTIONS.items()
    ):
        figure = f"jvm.{memory}.used"
        peak, limit = (told.get((process, each), 0.0) for each in (figure, limit_of(figure)))
        of = f"{option} not known"
        if limit > 0:
            of = f"{in_words(Unit.SHARE, peak / limit)} of {option} ({in_words(Unit.BYTES, limit)})"
        if peak:
            said = f"{memory} memory at most {in_words(Unit.BYTES, peak)}, {of}"
            servers.setdefault(process, []).append(said)
    if not servers or total is None:
        return ""
    answered = in_words(Unit.SHARE, total["answered"] / total["requests"])
    had = "; ".join(f"the {name}'s JVM had {', '.join(said)}" for name, said in servers.items())
    return f"{answered} of the requests were answered, and meanwhile {had}."


def _sign(found: Finding | Verdict) -> str:
    return "✓" if found.fine else "✗"


def _section(heading: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    heads = columns(rows, {"family", "bytes", "asked", *SELDOM} & rows[0].keys())
    cells = ([plain(cell(name, row[name])) for name in heads] for row in rows[:_MOST_ROWS])
    return [f"## {heading}", "", *markdown_table([*heads.values()], cells), ""]
