"""``python -m benchmarks``: runs benchmarks, prints tables, writes out/bench/results.json."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.processes import BenchError
from benchmarks.registry import BENCHES
from benchmarks.result import BenchOptions, BenchResult
from benchmarks.tables import TERMINAL_COLUMNS, result_table
from loadgen.errors import LoadgenError
from loadgen.places.server_process import termination_interrupts
from tests.support.steps import StepDisplay

SCHEMA_VERSION = 1
RESULTS_NAME = "results.json"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def benchmarks(
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds.")] = 7,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="How long each side is measured in a round.")
    ] = 2.0,
    only: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(BENCHES)}; may be repeated.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="1,000,000 topics, 100,000 waiters.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Directory of the results.")] = Path("out/bench"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure this project's speed and memory, as ratios to alternatives that users have.

    Everything is measured in interleaved rounds of one run; median and range are
    printed and written to out/bench/results.json.

    Examples:
      python -m benchmarks

      python -m benchmarks --only listings --rounds 3 --seconds 1
    """
    names = _names(only)
    options = BenchOptions(rounds=rounds, seconds=seconds, full=full)
    with termination_interrupts(), StepDisplay(Console(stderr=True)).shown() as steps:
        results = {name: _run(name, options, steps) for name in names}
    document = results_document(results, options)
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS_NAME).write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    if as_json:
        sys.stdout.write(f"{json.dumps(document)}\n")
    else:
        _show(results, out / RESULTS_NAME)


def _names(only: list[str] | None) -> list[str]:
    for name in only or ():
        if name not in BENCHES:
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(BENCHES)}", param_hint="--only"
            )
    return list(dict.fromkeys(only or BENCHES))


def _run(name: str, options: BenchOptions, steps: StepDisplay) -> BenchResult:
    bench = BENCHES[name]
    with steps.step(bench.title) as note:
        return bench.run(replace(options, note=note))


def results_document(results: dict[str, BenchResult], options: BenchOptions) -> dict[str, Any]:
    """Return the contents of the results file as a JSON object."""
    return {
        "schema_version": SCHEMA_VERSION,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": {
            "python": platform.python_version(),
            "uvloop": version("uvloop"),
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
        },
        "rounds": options.rounds,
        "seconds": options.seconds,
        "benchmarks": {name: result.to_json() for name, result in results.items()},
    }


def _show(results: dict[str, BenchResult], path: Path) -> None:
    console = Console(width=TERMINAL_COLUMNS)
    for name, result in results.items():
        console.print(result_table(BENCHES[name].title, result))
    console.print(f"All figures, round by round: {path}", highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command line; if a measurement fails, print a sentence and exit with 1."""
    try:
        app()
    except (BenchError, LoadgenError) as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
