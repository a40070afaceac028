"""The commands ``loadgen sweep`` and ``loadgen find-limit``, which vary a scenario's settings.

``sweep`` tries many values; ``find-limit`` finds the last value that passes.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from loadgen.commands.options import (
    AsJson,
    BrokerConf,
    ProxyConf,
    Settings,
    Target,
    own_files,
)
from loadgen.commands.shown import console, counting, print_object, say, table_of
from loadgen.errors import ExitCode, LoadgenError, UsageError, read_text, write_text
from loadgen.places.server_process import termination_interrupts
from loadgen.report.drawing import picture
from loadgen.report.run_charts import sweep_chart
from loadgen.studies.find_limit import find_limit, in_words, parse_range
from loadgen.studies.points import Study
from loadgen.studies.sweep import (
    PARQUET_NAME,
    SweepOptions,
    lines_of,
    parse_grid,
    parse_varied,
    require_valid,
    sweep,
)
from loadgen.studies.sweep import table_of as rows_of
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.studies.points import Point

_PICTURE_NAME = "sweep.svg"
_MOST_LINES = 6
_WIDEST = 1000
"""Columns of a table, which exceeds the terminal's width instead of being cut."""
Where = Literal["virtual", "processes"]


def run_sweep(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Target,
    *,
    vary: list[str] | None = None,
    grid: Path | None = None,
    settings: Settings = None,
    repeats: int = 1,
    place: Where = "virtual",
    workers: int = os.cpu_count() or 1,
    master: str | None = None,
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    out: Path = Path("out/sweep"),
    as_json: AsJson = False,
) -> None:
    r"""Run a scenario with every combination of values of its settings.

    Writes a run directory for each run, and sweep.parquet with values, figures
    and verdicts; prints the medians over repeats, and draws sweep.svg along
    numbers. Complete runs in --out are used again, unless the scenario or a
    policy's module has changed. The rows are the same with Spark and here.

    Exit code 0: measured, whether expectations were met or missed; 97: a run had
    wrong answers, or a server kept memory of clients that have left; 98: a run
    is not to be relied on.

    Examples:
      loadgen sweep storm \
        --vary servers.broker.maxTopicListInFlightHeapMemSizeMB=10,20 \
        --vary servers.profile=pulsar,floodgate --repeats 5

      loadgen sweep mine.yaml --grid grid.yaml

    Options:
        vary (PATH=VALUE,...): Path in the scenario, as with --set, and values to try;
            PATH=LOW..HIGH/COUNT: so many between two ends. May be repeated: every combination runs.
        grid (FILE): YAML file with the same: a list of values for each path.
        repeats: Runs of each combination, with seeds 1, 2, ...
        place (PLACE): virtual: simulated; processes: real servers and sockets, one run at a time.
        workers: Simulations in parallel.
        master (URL): Spark master that runs the simulations.
        out (DIR): Directory for the results.
    """
    varied = [parse_varied(each) for each in vary or ()]
    if grid is not None:
        varied += parse_grid(read_text("--grid", grid), grid)
    files = own_files(broker_conf, proxy_conf, as_json=as_json)
    options = SweepOptions(
        target, settings or (), out, place, files, varied, repeats=repeats, workers=workers
    )
    with ExitStack() as stack:
        stack.enter_context(termination_interrupts())
        session = None
        if master is not None:
            from loadgen.spark.session import SparkSettings, spark_session

            wanted = SparkSettings("loadgen sweep", cores=workers, master=master)
            session = stack.enter_context(spark_session(wanted))
        runs = options.points
        on_done = stack.enter_context(counting(plural(runs, "run"), runs, as_json=as_json))
        points = sweep(options, on_done, session=session)
    if as_json:
        print_object(1, {"scenario": target, "points": points})
    else:
        _show(points, out)
    require_valid(points)


def _show(points: Sequence[Point], out: Path) -> None:
    heads, rows = rows_of(points)
    screen, table = console(), table_of(heads, rows)
    whole = screen.measure(table, options=screen.options.update(max_width=_WIDEST)).minimum
    screen.width = max(screen.width, whole)
    screen.print(table)
    screen.print(f"Written: {out / PARQUET_NAME}", soft_wrap=True)
    found = lines_of(points)
    if found is not None:
        along, lines = found
        title = "Seconds until 99 % of clients are back: median and range over repeats"
        chart = sweep_chart(title, along, list(lines.items())[:_MOST_LINES])
        write_text(out / _PICTURE_NAME, picture([chart]))
        screen.print(f"Written: {out / _PICTURE_NAME}", soft_wrap=True)


def run_find_limit(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Target,
    *,
    vary: Annotated[
        str,
        typer.Option(
            metavar="PATH=LOW..HIGH", help="Value of the scenario, and the range to search."
        ),
    ],
    settings: Settings = None,
    precision: float = 5.0,
    place: Where = "virtual",
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    out: Path = Path("out/find-limit"),
    as_json: AsJson = False,
) -> None:
    r"""Bisect a setting's range for the last value that meets the scenario's expectations.

    If the low end of the range passes and the high end fails, finds the highest
    value that passes, such as a number of clients; in the opposite case the
    lowest, such as a memory limit.

    Exit code 0: found; 99: both ends pass, or both fail; 97, 98: the search ended
    at a run with wrong answers, or at an unreliable run.

    Examples:
      loadgen find-limit mine.yaml --vary clients.all.count=10..1000

      loadgen find-limit mine.yaml \
        --vary servers.broker.maxTopicListInFlightDirectMemSizeMB=1..100

    Options:
        precision: Precision of the result, percent of the value.
        place (PLACE): virtual: simulated; processes: real servers and sockets.
        out (DIR): Directory for the runs.
    """
    if not 0.001 <= precision <= 50:
        raise UsageError(f"--precision {precision:g}: must be 0.001 to 50 percent")
    wanted = parse_range(vary)
    study = Study(
        target, settings or (), out, place, own_files(broker_conf, proxy_conf, as_json=as_json)
    )

    def show(point: Point) -> None:
        if not as_json:
            say(in_words(point))

    with termination_interrupts():
        limit = find_limit(study, wanted, precision / 100, show)
    if as_json:
        print_object(1, {"scenario": target, "path": wanted.path, **vars(limit)})
    elif limit.passes is not None:
        sys.stdout.write(f"{wanted.path}: {limit.sentence}\n")
    if limit.passes is None:
        raise LoadgenError(
            f"{wanted.path}: {limit.sentence} Give --vary two ends, of which one passes.",
            ExitCode.THRESHOLDS,
        )
