"""``loadgen demo``: a restart storm that shows the faults of Pulsar's limits, and their fixes."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from loadgen.commands.options import parsed
from loadgen.commands.shown import console, print_sentences, say, table_of
from loadgen.errors import UsageError, require_spark, write_text
from loadgen.places.options import Place  # noqa: TC001 (evaluated by Typer)
from loadgen.places.server_process import termination_interrupts
from loadgen.plan.fields import Speed
from loadgen.report.page import comparison_page, picture_of, write_page
from loadgen.report.run_charts import labels_of
from loadgen.report.sections import beside
from loadgen.results.results import Results
from loadgen.studies.demo import STORMS, DemoOptions, run_demo
from loadgen.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.studies.demo import DemoResult

_NUMBER = re.compile(r"[\d.]{1,20}[kKmM]?")


def demo(
    *,
    topics: str = "1M",
    namespaces: int | None = None,
    clients: int = 1000,
    read_rate: str = "100kB/s",
    place: Place = "processes",
    out: Path = Path("out/demo"),
) -> None:
    r"""Show a restart storm: without limits, with Pulsar's limits, with Floodgate.

    Makes topics, starts a broker and a proxy for each of three runs, and has all
    clients list topics at the same moment and read slowly. In two more runs, as
    in Pulsar and with Floodgate, one client requests many lists and reads none.
    Prints tables, writes report.html, demo.svg and summary.json.

    The demo assumes more than `loadgen rehearse`, which plays your own topics,
    clients and files: each client lists once, reads slowly, comes through a proxy
    and never retries.

    Exit code 0: all checks passed; 97: an answer was wrong; 99: a check failed.

    Examples:
      loadgen demo

      loadgen demo --topics 50000 --clients 100 --out out/small

    Options:
        topics (NUMBER): Number of topics to make (50000, 1M).
        namespaces: Namespaces of the made topics. Default: one for 10,000 topics.
        clients: Clients, which all list topics at the same moment.
        read_rate (RATE): Bytes a second that each client reads of its list.
        place (PLACE): Where storms run: processes, spark, or virtual (simulated).
        out (DIR): Directory for all results.
    """
    number = _topics_of_demo(topics, namespaces)
    if place == "spark":
        require_spark()
    rate, begun = parsed("--read-rate", read_rate, Speed), time.monotonic()
    options = DemoOptions(number, namespaces, clients, rate, out, place)
    with termination_interrupts():
        result = run_demo(options, say)
    _show_demo(result, out)
    print_sentences([f"\n{time.monotonic() - begun:.0f} s in all."])
    raise typer.Exit(int(result.exit_code))


def _show_demo(result: DemoResult, out: Path) -> None:
    """Write the demo's HTML page and SVG picture, and print its tables, checks and conclusions."""
    words = [*result.last_words, *result.notes]
    checks = [(each.mark, each.sentence) for each in result.checks]
    with ExitStack() as stack:
        runs = [stack.enter_context(Results.open(each.directory)) for each in result.runs]
        storms, stuck = runs[: len(STORMS)], runs[len(STORMS) :]
        told = [*map(" ".join, checks), *words]
        page = comparison_page(runs, "Floodgate demo", told, (result.fine, result.headline))
        write_page(out / "report.html", page)
        # In virtual time no process has a memory of its own.
        memory = [] if storms[0].run["place"] == "virtual" else ["servers.over-idle"]
        write_text(out / "demo.svg", picture_of(storms, [*memory, "outcomes"]))
        _show_part("Restart storm: every client lists topics at the same moment", storms)
        _show_part("One client requests 64 lists and reads none, beside healthy ones", stuck)
    print_sentences(["Checks (✓ passed, ! a fault of Pulsar reproduced, ✗ failed)"])
    console().print(table_of(("", ""), checks))
    print_sentences(result.last_words, result.notes)
    print_sentences(
        [f"Open {out / 'report.html'} in a browser; all figures are in {out / 'summary.json'}."]
    )


def _show_part(heading: str, runs: Sequence[Results]) -> None:
    if runs:
        print_sentences([f"\n{heading}"])
        rows = [[*row.values()] for row in beside(runs, labels_of(runs))]
        console().print(table_of(["", *labels_of(runs)], rows))


def _topics_of_demo(topics: str, namespaces: int | None) -> int:
    """Convert the value of ``--topics`` to a number of topics.

    Raises:
        UsageError: The text is no number, or below the number of namespaces.
    """
    if not _NUMBER.fullmatch(topics):
        raise UsageError(
            f"--topics {topics[:200]} is no number (50000, 1M); your own topics are for: loadgen "
            "rehearse --topics FILE"
        )
    number = parse_size("--topics", topics)
    if number % 1 or number < (namespaces or 1):
        raise UsageError(
            f"--topics {topics} is not a whole number of topics, one a namespace at least"
        )
    return int(number)
