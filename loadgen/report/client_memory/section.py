"""The report's part on a client's memory limit: its picture, and rows for each part of a run."""

from __future__ import annotations

import base64
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.extras import PICTURES, REMEDY, is_installed
from loadgen.report.addition import Addition, FigureRow
from loadgen.report.charts import key_mark, run_class
from loadgen.report.client_memory.pictures import TITLES, draw_client_memory_pictures
from loadgen.report.sentences import scenario_sentence
from loadgen.scenarios.client_memory.scenario import POLICIES, PRODUCING
from loadgen.scenarios.registry import kind_named
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.results.client_memory import ClientMemoryFigures, PartFigures
    from loadgen.results.summary import Run, RunSummary

    Measure = tuple[str, Callable[[ClientMemoryFigures, PartFigures], str]]

NOT_PLAYED = "not played"
_MEMORY: tuple[Measure, ...] = (
    (
        "most counted",
        lambda all_, part: (
            f"{format_bytes(part.high_water_bytes)} of {format_bytes(all_.limit_bytes)}"
        ),
    ),
    ("most taken by the process", lambda all_, part: format_bytes(part.resident_peak_bytes)),
    ("  before the client", lambda all_, part: format_bytes(part.resident_baseline_bytes)),
)
_CONSUMING: tuple[Measure, ...] = (
    *_MEMORY,
    (
        "  the rest, for each consumer",
        lambda all_, part: format_bytes(part.rest_bytes / all_.consumers),
    ),
    ("largest queue", lambda all_, part: format_count(part.queue_most_peak)),
    ("all queues together", lambda all_, part: format_count(part.queue_sum_peak)),
    ("queues grew, shrank", lambda all_, part: f"{part.growths_peak:,}, {part.shrinks_peak:,}"),
    ("consumers in line", lambda all_, part: format_count(part.consumers_waiting_peak)),
    ("slowest first message", lambda all_, part: _first_message(part)),
    ("messages a second", lambda all_, part: format_count(part.messages / part.seconds)),
)
_SENDING: tuple[Measure, ...] = (
    *_MEMORY,
    ("sends that waited", lambda all_, part: format_count(part.sends_waiting_peak)),
    ("delivered", lambda all_, part: f"{part.messages:,} of {all_.messages_sent:,}"),
)
_PARTS = (
    *((policy, TITLES[policy], _CONSUMING) for policy in POLICIES),
    (PRODUCING, "Producers, server stopped", _SENDING),
)


def _rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    for name, group, measures in _PARTS:
        for measure, write in measures:
            cells = [_cell(summary, name, write) for summary in summaries]
            yield FigureRow(group, measure, cells, [False] * len(cells))


def _cell(
    summary: RunSummary, name: str, write: Callable[[ClientMemoryFigures, PartFigures], str]
) -> str:
    figures = summary.client_memory
    if figures is None or name not in figures.parts:
        return NOT_PLAYED
    return write(figures, figures.parts[name])


def _first_message(part: PartFigures) -> str:
    if part.without_message:
        return f"{part.without_message:,} got none"
    seconds = part.first_message_slowest_seconds
    return NOT_PLAYED if seconds is None else format_seconds(seconds)


def _sentences(summary: RunSummary) -> Iterator[str]:
    if summary.client_memory is not None:
        yield from (check.sentence for check in summary.client_memory.checks)


def _headline(summaries: Sequence[RunSummary]) -> str:
    return " ".join(filter(None, map(_compared, summaries)))


def _compared(summary: RunSummary) -> str:
    figures = summary.client_memory
    if figures is None or not all(policy in figures.parts for policy in POLICIES):
        return ""
    ours, upstream = (figures.parts[policy] for policy in POLICIES)
    return (
        f"“{summary.label}”: with a limit of {format_bytes(figures.limit_bytes)} "
        f"{figures.consumers:,} consumers took at most {format_bytes(ours.high_water_bytes)} of "
        f"messages, by upstream's rules {format_bytes(upstream.high_water_bytes)}."
    )


def _card(index: int, summary: RunSummary) -> str:
    figures = summary.client_memory
    assert figures is not None, summary.name
    failed = [check for check in figures.checks if not check.passed]
    facts = [
        (title, f"<dd>{_cell(summary, name, measures[0][1])}</dd>")
        for name, title, measures in _PARTS
    ]
    facts += [("does not hold", f'<dd class="bad">{escape(each.name)}</dd>') for each in failed]
    listed = "".join(f"<dt>{escape(name)}</dt>{cell}" for name, cell in facts)
    return (
        f'<article class="card {run_class(index)}"><h3>{key_mark(index)} {escape(summary.label)}'
        f'</h3><div class="big">{format_bytes(figures.limit_bytes)}</div><p class="of">the '
        f"client's limit; counted at most</p><dl>{listed}</dl></article>"
    )


def _section(runs: Sequence[tuple[int, Run]], own_cards: bool) -> str:
    words, top = kind_named(runs[0][1].summary.scenario).words, ""
    if own_cards:
        each = "\n".join(_card(index, run.summary) for index, run in runs)
        top = f'<p>{escape(scenario_sentence(runs[0][1]))}</p><div class="cards">{each}</div>'
    pictures = "".join(
        f'<div class="row"><h3>{key_mark(index)} {escape(run.summary.label)}</h3>{_picture(run)}'
        "</div>"
        for index, run in runs
    )
    return f"<section><h2>{words.title}</h2>{top}{pictures}</section>"


def _picture(run: Run) -> str:
    if not is_installed(PICTURES):
        return f"<p>No picture: it needs matplotlib ({escape(REMEDY)}).</p>"
    with tempfile.TemporaryDirectory(prefix="floodgate-picture-") as folder:
        light, dark = (
            f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
            for path in draw_client_memory_pictures(run, Path(folder))
        )
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" style="max-width:100%" alt="Memory of the client over time, its '
        'limit, and the sizes of receiver queues"></picture>'
    )


CLIENT_MEMORY_ADDITION = Addition(_rows, _sentences, _headline, _card, _section)
