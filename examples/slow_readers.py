"""Example ``python -m examples.slow_readers``: how a few slow readers delay other clients."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - Typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from examples.figures import SCHEMA_VERSION, TERMINAL_COLUMNS, PolicyChoice
from examples.replies import (
    Readers,
    RunFigures,
    Workload,
    figures_of,
    requests_of_seed,
    simulate,
)
from examples.simulation import LimiterFaultError
from examples.slow_readers_words import assumptions, group_table, seed_table, verdict
from examples.wait_curves import WaitCurve, curves_of, draw_curves
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.admission.rules import AdmissionPolicy

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def slow_readers(  # noqa: PLR0913 - one parameter for each option
    policy: Annotated[PolicyChoice, typer.Option(help="Which order.")] = PolicyChoice.BOTH,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds 1 to this.")] = 5,
    requests: Annotated[
        int, typer.Option(min=1, help="Measured requests of each run.")
    ] = Workload().requests,
    load: Annotated[
        float, typer.Option(min=0.01, max=2.0, help="Offered memory load, 1 is the limit.")
    ] = Workload().offered_load,
    readers: Annotated[
        Readers,
        typer.Option(
            help="own: each request is of a connection of its own. connections: 50 of 1,000 are "
            "always slow. mixed: each of 1,000 is slow at times."
        ),
    ] = Readers.OWN,
    queue_size: Annotated[
        int, typer.Option(min=0, help="Places for waiting requests; 0 is unbounded.")
    ] = Workload().max_queue_size,
    picture: Annotated[Path | None, typer.Option(help="Draw the waits into this SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Let 5 % slow readers pin the memory of 200,000 replies, under both admission policies.

    The real limiter's code runs on a virtual clock, a quarter of an hour in
    seconds. Both policies meet the same requests; the same seed gives the same
    figures.

    Examples:
      python -m examples.slow_readers

      python -m examples.slow_readers --load 0.85 --readers connections

      python -m examples.slow_readers --requests 20000 --policy fifo --json

      python -m examples.slow_readers --picture waits.svg
    """
    workload = Workload(
        requests=requests, offered_load=load, readers=readers, max_queue_size=queue_size
    )
    runs, curves = run_all(workload, policy.policies, range(1, seeds + 1))
    if picture is not None:
        draw_curves(curves, picture)
    if as_json:
        sys.stdout.write(f"{json.dumps(document(workload, runs))}\n")
    else:
        _show(workload, runs)


def run_all(
    workload: Workload, policies: Sequence[AdmissionPolicy], seeds: Sequence[int]
) -> tuple[list[RunFigures], list[WaitCurve]]:
    """Simulate every seed under every policy, and show the progress on a terminal."""
    runs: list[RunFigures] = []
    curves: list[WaitCurve] = []
    with Console(stderr=True).status("") as status:
        for seed in seeds:
            requests = requests_of_seed(workload, seed)
            for policy in policies:
                status.update(f"seed {seed} of {seeds[-1]}, {policy.value}")
                run = simulate(workload, requests, policy)
                runs.append(figures_of(workload, requests, run, seed=seed, policy=policy))
                curves += curves_of(requests, run, policy)
    return runs, curves


def document(workload: Workload, runs: Sequence[RunFigures]) -> dict[str, Any]:
    """Return the results as the JSON object that ``--json`` prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "assumptions": assumptions(workload),
        "workload": {**asdict(workload), "requests_per_second": workload.requests_per_second},
        "runs": [{**asdict(run), "policy": run.policy.value} for run in runs],
        "verdict": verdict(workload, runs),
    }


def _show(workload: Workload, runs: Sequence[RunFigures]) -> None:
    console = Console(width=TERMINAL_COLUMNS)
    console.print(assumptions(workload), highlight=False)
    console.print(seed_table(runs))
    console.print(group_table(runs))
    for sentence in verdict(workload, runs):
        console.print(sentence, highlight=False)


def main() -> None:
    """Run the command line; if the limiter violates its rules, print a sentence and exit with 1."""
    try:
        app()
    except (LimiterFaultError, LoadgenError) as error:
        sys.stderr.write(f"examples.slow_readers: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
