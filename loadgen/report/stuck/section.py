"""The report's part on clients that read nothing: cards and dots of the runs that had any."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from loadgen.report.addition import Addition
from loadgen.report.charts import key_mark, run_class
from loadgen.report.sentences import scenario_sentence
from loadgen.report.stuck.dots import dot_charts, render_dots
from loadgen.report.stuck.figures import (
    closed_peers,
    nobody_answered,
    phase_latency,
    stuck_rows,
    taken,
)
from loadgen.report.stuck.words import words_of
from loadgen.scenarios.registry import kind_named
from loadgen.units import format_bytes, format_count, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.results.silent import SilentFigures
    from loadgen.results.stuck import StuckFigures
    from loadgen.results.summary import Run, RunSummary


def _section(runs: Sequence[tuple[int, Run]], own_cards: bool) -> str:
    summary = runs[0][1].summary
    words, top = words_of(summary), ""
    if own_cards:
        each = "\n".join(_card(index, run.summary) for index, run in runs)
        scenario = escape(scenario_sentence(runs[0][1]))
        top = f'<p>{scenario}</p><div class="cards">{each}</div>'
    charts = "\n".join(render_dots(dots) for dots in dot_charts(runs))
    return (
        f"<section><h2>{kind_named(summary.scenario).words.title}</h2>{top}"
        f'<div class="row"><h3>Every {words.request} of the {words.healthy}</h3><p>Across: when '
        'it was due. Up: how long until it was <span class="answered-word">answered (solid)</span> '
        'or <span class="refused-word">refused (ring)</span>. The shade is the time in which '
        f'{words.peer}s were connected.</p><div class="pair">{charts}</div></div></section>'
    )


def _card(index: int, summary: RunSummary) -> str:
    assert summary.stuck is not None, summary.name
    figures, words = summary.stuck, words_of(summary)
    phase = figures.stuck
    facts = [
        ("refused", _cell(format_count(phase.refused), bad=phase.refused > 0)),
        ("without any answer", _cell(nobody_answered(figures))),
        ("p50, p99 before", _cell(phase_latency(figures.before))),
        ("p50, p99 with them", _cell(phase_latency(phase))),
        *(() if summary.silent is None else _silent_facts(summary.silent)),
        ("closed by the server", _cell(closed_peers(figures))),
    ]
    if summary.failed:
        facts.insert(1, ("failed", _cell(format_count(summary.failed), bad=True)))
    listed = "".join(f"<dt>{name}</dt>{cell}" for name, cell in facts)
    return (
        f'<article class="card {run_class(index)}"><h3>{key_mark(index)} {escape(summary.label)}'
        f'</h3><div class="big">{phase.answered_in_phase:,} of {phase.requests:,}</div>'
        f'<p class="of">healthy {words.request}s answered while {words.peer}s were connected</p>'
        f"<dl>{listed}</dl></article>"
    )


def _silent_facts(figures: SilentFigures) -> Iterator[tuple[str, str]]:
    yield (
        "taken from silent producers",
        _cell(f"{figures.messages_sent:,} of {figures.messages_wanted:,}"),
    )
    yield "of them held up", _cell(f"{figures.producers_held_up:,} of {figures.producers:,}")


def _cell(text: str, *, bad: bool = False) -> str:
    return f'<dd class="bad">{escape(text)}</dd>' if bad else f"<dd>{escape(text)}</dd>"


def _headline(summaries: Sequence[RunSummary]) -> str:
    parts = [
        f"“{summary.label}” answered {figures.stuck.answered_in_phase:,} of "
        f"{words_of(summary).requests(figures.stuck.requests)}"
        for summary in summaries
        if (figures := summary.stuck) is not None
    ]
    return f"While {words_of(summaries[0]).there}, {', '.join(parts)}.{_costs(summaries)}"


def _costs(summaries: Sequence[RunSummary]) -> str:
    """Say how many messages the servers took from silent producers, and the memory for that."""
    parts = []
    for summary in summaries:
        if summary.silent is not None:
            memory = summary.resident_over_idle_bytes
            over_idle = "" if memory is None else f" and needed {format_bytes(memory)} over idle"
            parts.append(f"“{summary.label}” took {taken(summary.silent)}{over_idle}")
    return f" Of their own {', '.join(parts)}." if parts else ""


def _sentences(summary: RunSummary) -> Iterator[str]:
    figures, words = summary.stuck, words_of(summary)
    if figures is None or figures.asked_seconds is None:
        yield f"No {words.peer} sent a request in this run."
        return
    phase = figures.stuck
    late = phase.answered_afterwards
    afterwards = f", {late:,} answered later" if late else ""
    yield (
        f"While {words.peers(figures)} read nothing, {phase.answered_in_phase:,} of "
        f"{words.requests(phase.requests)} were answered and {phase.refused:,} refused"
        f"{afterwards}. {_outage(figures, words.request)}"
    )
    if summary.silent is not None:
        yield summary.silent.verdict
    if figures.closed:
        yield f"The server closed {closed_peers(figures)}, counted from their requests."
    else:
        yield "The server closed none of them."
    if figures.connections_lost:
        yield f"Healthy clients lost {plural(figures.connections_lost, 'connection')}."


def _outage(figures: StuckFigures, request: str) -> str:
    if figures.nobody_answered_seconds is None:
        return f"No {request} was answered once they had sent their requests."
    return (
        f"The first answer came {nobody_answered(figures)} after the first of these {request}s was "
        "due."
    )


STUCK_ADDITION = Addition(stuck_rows, _sentences, _headline, _card, _section)
