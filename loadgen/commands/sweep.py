"""``loadgen sweep``: many values of a setting; ``loadgen find-limit``: the last that passes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.analysis.judging import require_watched
from loadgen.analysis.thresholds import parse_thresholds
from loadgen.commands.progress_bar import counting
from loadgen.documents.reading import read_document
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.executors.processes import ExecutorKind
from loadgen.places.server_process import termination_interrupts
from loadgen.report.tables import summary_console
from loadgen.results.verdict import WORDS
from loadgen.sweeps.bisection import bisect
from loadgen.sweeps.figures import real_figures, virtual_figures
from loadgen.sweeps.picture import SHOWN, draw, in_words, table_of
from loadgen.sweeps.sweep import in_processes, in_spark, jobs_of, require_valid, told, write_points
from loadgen.sweeps.variation import grid, parse_grid, parse_range, parse_varied, with_values
from loadgen.units import plural
from loadgen.virtual.silence import servers_silent
from loadgen.virtual.simulation import require_virtual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.documents.document import Document
    from loadgen.sweeps.figures import RunFigures
    from loadgen.sweeps.sweep import Point
    from loadgen.sweeps.variation import Value, Varied

_TARGET = typer.Argument(
    metavar="NAME|FILE",
    help="Ready-made scenario (`loadgen scenarios` lists them), or your own FILE.yaml.",
)
_MOST_SEEDS = 1000
_WIDEST = 1000
"""Columns of a table: it is wider than its terminal rather than cut."""
_PROBED = ("clients.back.rate", "clients.back.p99", "requests.refused.rate")


def sweep(  # noqa: PLR0913 - one parameter for each option
    target: Annotated[str, _TARGET],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=VALUE,...",
            help="Setting and its values: broker.KEY, proxy.KEY, topics.FIELD, profile, or a "
            "field of the load. May be repeated: every combination runs.",
            show_default=False,
        ),
    ] = None,
    grid_file: Annotated[
        Path | None,
        typer.Option("--grid", help="YAML file with the same: a list of values for each setting."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, max=_MOST_SEEDS, help="Runs of each combination, with seeds 1, 2, ..."),
    ] = 1,
    executor: Annotated[
        ExecutorKind, typer.Option(help="spark: one Spark job; process: processes, without Java.")
    ] = ExecutorKind.SPARK,
    workers: Annotated[
        int, typer.Option(min=1, help="Parallel runs.", show_default="the cores")
    ] = os.cpu_count() or 1,
    master: Annotated[
        str | None, typer.Option(help="Spark master; default: local.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the results.")] = Path("out/sweep"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all runs as JSON on standard output.")
    ] = False,
) -> None:
    r"""Simulate a scenario with every combination of some values.

    Writes sweep.parquet (a row for each run: values, figures, verdict), prints
    the medians over seeds, and draws sweep.svg. The rows are the same with Spark
    and with processes.

    Exit code 0: measured, whether thresholds were met or missed; 97: a run had
    wrong answers, or a server kept memory of clients that have left; 98: this
    machine was the limit.

    Examples:
      loadgen sweep storm --vary broker.maxTopicListInFlightHeapMemSizeMB=10,20 \
        --vary profile=pulsar,floodgate --seeds 5

      loadgen sweep mine.yaml --grid grid.yaml --executor process
    """
    varied = [parse_varied(each) for each in vary or ()] + _grid_of(grid_file)
    if not varied:
        raise UsageError("no setting to vary: give --vary PATH=VALUE,VALUE, or --grid FILE")
    document = read_document(target)
    _require_measured(document, ProbeExecutor.VIRTUAL)
    points = list(grid(varied, range(1, seeds + 1)))
    jobs = jobs_of(document, points)
    text = plural(len(jobs), "run")
    with termination_interrupts(), counting(text, len(jobs), hidden=as_json) as on_done:
        if executor == ExecutorKind.PROCESS:
            done = in_processes(jobs, workers, on_done)
        else:
            done = _done_in_spark(jobs, workers, master, on_done)
    written = (write_points(done, out), *draw(done, out))
    if as_json:
        sys.stdout.write(json.dumps([told(each) for each in done], indent=2) + "\n")
    else:
        _show(done, written)
    require_valid(done)


def _show(points: list[Point], written: Sequence[Path]) -> None:
    console = summary_console()
    table = table_of(points)
    whole = console.measure(table, options=console.options.update(max_width=_WIDEST)).minimum
    console.width = max(console.width, whole)
    console.print(table)
    for each in written:
        console.print(f"Written: {each}", soft_wrap=True, highlight=False)


def _grid_of(path: Path | None) -> list[Varied]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--grid {path} cannot be read: {error}") from None
    return parse_grid(text, path)


def _done_in_spark(jobs: list[str], workers: int, master: str | None, on_done: Any) -> list[Point]:  # noqa: ANN401
    # Spark is imported only where it is asked for: it takes a second.
    from loadgen.spark.session import SparkSettings, spark_session

    with spark_session(SparkSettings("loadgen sweep", cores=workers, master=master)) as session:
        return in_spark(session, jobs, on_done)


class ProbeExecutor(StrEnum):
    """The places where a probe runs."""

    VIRTUAL = "virtual"
    PROCESS = "process"


def _require_measured(document: Document, executor: ProbeExecutor) -> None:
    """Refuse a scenario that does not run there, and thresholds that nobody would measure."""
    thresholds = parse_thresholds(document.head.thresholds)
    if executor == ProbeExecutor.VIRTUAL:
        require_virtual(document.scenario, document.cluster, thresholds)
    require_watched(thresholds, document.cluster.processes)


def find_limit(
    target: Annotated[str, _TARGET],
    vary: Annotated[
        str,
        typer.Option(metavar="PATH=LOW..HIGH", help="Setting, and the range to search."),
    ],
    precision: Annotated[
        float,
        typer.Option(min=0.001, max=50, help="Precision of the result, percent of the value."),
    ] = 5.0,
    executor: Annotated[
        ProbeExecutor, typer.Option(help="virtual: simulated; process: real servers and sockets.")
    ] = ProbeExecutor.VIRTUAL,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON on standard output.")
    ] = False,
) -> None:
    r"""Bisect a setting for the last value that passes a scenario's thresholds.

    If the low end of the range passes and the high end fails, finds the highest
    value that passes, such as a rate; the other way round the lowest, such as a
    memory limit.

    Exit code 0: found; 99: both ends pass, or both fail; 97, 98: the search ended
    at a run with wrong answers, or in which this machine was the limit.

    Examples:
      loadgen find-limit mine.yaml --vary arrivals.per_second=10..1000

      loadgen find-limit mine.yaml \
        --vary broker.maxTopicListInFlightDirectMemSizeMB=1..100
    """
    document, wanted = read_document(target), parse_range(vary)
    if not document.head.thresholds:
        raise UsageError(
            f"{target} has no thresholds, so no value can fail: add some to the scenario"
        )
    _require_measured(document, executor)
    run = virtual_figures if executor == ProbeExecutor.VIRTUAL else real_figures

    def passes(value: Value) -> bool:
        found = run(with_values(document, {wanted.path: value}))
        if not as_json:
            sys.stderr.write(f"{wanted.path}={value}: {_in_short(found)}\n")
            sys.stderr.flush()
        _require_valid(found, f"{wanted.path}={value}")
        return found.passed

    with termination_interrupts(), servers_silent():
        limit = bisect(wanted, passes, precision / 100)
    if as_json:
        sys.stdout.write(json.dumps({"path": wanted.path, **asdict(limit)}) + "\n")
    elif limit.passes is not None:
        sys.stdout.write(f"{wanted.path}: {limit.sentence}\n")
    if limit.passes is None:
        raise LoadgenError(
            f"{wanted.path}: {limit.sentence} Give --vary ends of which one passes.",
            ExitCode.THRESHOLDS,
        )


def _require_valid(run: RunFigures, place: str) -> None:
    if not run.valid:
        raise LoadgenError(f"no limit was found: at {place} {run.missed[0]}", run.exit_code)


def _in_short(run: RunFigures) -> str:
    figures = ", ".join(f"{SHOWN[name]} {in_words(name, run.figures[name])}" for name in _PROBED)
    return f"{'; '.join((WORDS[run.exit_code], *run.missed))} ({figures})"
