"""Example ``python -m examples.hold_and_wait``: a stall of requests that wait for each other."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from examples.figures import (
    SCHEMA_VERSION,
    TERMINAL_COLUMNS,
    PolicyChoice,
    format_count,
    format_wait,
    with_range,
)
from examples.growth import (
    CASES,
    LIMIT_PERMITS,
    MAX_QUEUE_SIZE,
    SPREAD_SECONDS,
    STEP_SECONDS,
    TIMEOUT_SECONDS,
    Case,
    CaseFigures,
    simulate,
    times_at_once,
    times_of_seed,
)
from examples.simulation import LimiterFaultError
from limiter.admission.rules import AdmissionPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXPECTED_BY_CASE = {
    Case(20, 24, 24): (20, 0.1),
    Case(20, 24, 25): (4, 25.0),
    Case(20, 10, 20): (5, 25.0),
}
"""Policy fifo, simultaneous arrivals: completed requests, and the earliest end of the last; from a
minimal model of upstream's rules, older than this code. The model did not cover the case of 40.
"""
MODEL_MARGIN_SECONDS = 0.1
ASSUMPTIONS = (
    f"Limit {LIMIT_PERMITS} permits, {MAX_QUEUE_SIZE:,} places to wait, timeout "
    f"{TIMEOUT_SECONDS:g} s. Each request holds its estimate for {1000 * STEP_SECONDS:g} ms, then "
    f"asks for its actual size and holds that for {1000 * STEP_SECONDS:g} ms. All ask at the same "
    f"moment; with a seed they ask within {1000 * SPREAD_SECONDS:g} ms, and each step takes "
    f"{500 * STEP_SECONDS:g} to {1500 * STEP_SECONDS:g} ms, all uniform. Each request is of a "
    "connection of its own, all in one namespace."
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Outcomes = dict[Case, list[CaseFigures]]


@app.command()
def hold_and_wait(
    policy: Annotated[PolicyChoice, typer.Option(help="Which order.")] = PolicyChoice.BOTH,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds 1 to this.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Let requests hold an estimate and wait for the rest, under both admission policies.

    The real limiter's code runs on a virtual clock: 25 seconds pass at once, and
    the same seed gives the same figures.

    Examples:
      python -m examples.hold_and_wait

      python -m examples.hold_and_wait --policy fifo --seeds 50

      python -m examples.hold_and_wait --json
    """
    policies = policy.policies
    at_once = {one: run_cases(one, [None]) for one in policies}
    by_seed = {one: run_cases(one, range(1, seeds + 1)) for one in policies}
    if as_json:
        sys.stdout.write(f"{json.dumps(document(at_once, by_seed))}\n")
        return
    console = Console(width=TERMINAL_COLUMNS)
    console.print(ASSUMPTIONS, highlight=False)
    console.print(_table("All at the same moment", at_once))
    console.print(_table(f"Seeds 1 to {seeds}: median (range)", by_seed))
    for sentence in verdict(at_once, by_seed):
        console.print(sentence, highlight=False)


def run_cases(policy: AdmissionPolicy, seeds: Sequence[int | None]) -> Outcomes:
    """Simulate every case once for each seed; the seed None stands for no randomness."""
    return {case: [_run(case, seed, policy) for seed in seeds] for case in CASES}


def _run(case: Case, seed: int | None, policy: AdmissionPolicy) -> CaseFigures:
    number = case.requests
    times = times_at_once(number) if seed is None else times_of_seed(number, seed)
    return simulate(case, times, policy)


def document(
    at_once: Mapping[AdmissionPolicy, Outcomes], by_seed: Mapping[AdmissionPolicy, Outcomes]
) -> dict[str, Any]:
    """Return the results as the JSON object that ``--json`` prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "assumptions": ASSUMPTIONS,
        "runs": [
            {"policy": policy.value, "case": asdict(case), "seed": seed, **asdict(figures)}
            for policy in at_once
            for case in CASES
            for seed, figures in enumerate([*at_once[policy][case], *by_seed[policy][case]])
        ],
        "seed_0": "without chance: all at the same moment",
        "verdict": verdict(at_once, by_seed),
    }


def verdict(
    at_once: Mapping[AdmissionPolicy, Outcomes], by_seed: Mapping[AdmissionPolicy, Outcomes]
) -> list[str]:
    """Return sentences on whether the results are those that a model predicts."""
    sentences = []
    if AdmissionPolicy.FIFO in at_once:
        agree = all(_as_expected(case, at_once[AdmissionPolicy.FIFO]) for case in EXPECTED_BY_CASE)
        sentences.append(
            "fifo: the three cases end " + ("as" if agree else "NOT as") + " the minimal model of "
            "upstream's rules says: 20 of 20 after 0.1 s, 4 of 20 and 5 of 20 after 25 s."
        )
    for policy in at_once:
        runs = [f for c in CASES for f in (*at_once[policy][c], *by_seed[policy][c])]
        whole = sum(not (run.timed_out or run.stalled) for run in runs)
        slowest = max(run.last_completed_seconds or 0.0 for run in runs)
        sentences.append(
            f"{policy.value}: {whole} of {len(runs)} runs complete every request; the last request "
            f"of any run is completed after {format_wait(slowest)}."
        )
    if len(at_once) > 1:
        sentences.append(_order(at_once, by_seed))
    return sentences


def _as_expected(case: Case, outcomes: Outcomes) -> bool:
    completed, seconds = EXPECTED_BY_CASE[case]
    (figures,) = outcomes[case]
    last = figures.last_completed_seconds or 0.0
    close = abs(last - seconds) <= MODEL_MARGIN_SECONDS
    return figures.completed == completed and close


def _order(
    at_once: Mapping[AdmissionPolicy, Outcomes], by_seed: Mapping[AdmissionPolicy, Outcomes]
) -> str:
    """Return a sentence that compares the numbers of requests that both policies completed."""
    pairs = [
        (fifo, fair)
        for runs in (at_once, by_seed)
        for case in CASES
        for fifo, fair in zip(
            runs[AdmissionPolicy.FIFO][case], runs[AdmissionPolicy.FAIR][case], strict=True
        )
    ]
    better = sum(fair.completed > fifo.completed for fifo, fair in pairs)
    worse = sum(fair.completed < fifo.completed for fifo, fair in pairs)
    return (
        f"Order: {'as' if better > worse == 0 else 'NOT as'} the model expects of serving growth "
        f"first: fair completes more requests than fifo in {better} of {len(pairs)} runs, fewer in "
        f"{worse}."
    )


def _table(title: str, outcomes: Mapping[AdmissionPolicy, Outcomes]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Requests", no_wrap=True)
    table.add_column("Policy")
    for heading in ("Completed", "Refused", "Last after, s", "High water"):
        table.add_column(heading, justify="right", no_wrap=True)
    for case in CASES:
        for policy, figures in outcomes.items():
            name = f"{case.requests} of {case.estimate}, then {case.actual}"
            table.add_row(name, policy.value, *_row(figures[case]))
        table.add_section()
    return table


def _row(runs: Sequence[CaseFigures]) -> list[str]:
    return [
        with_range([run.completed for run in runs], format_count),
        with_range([run.timed_out + run.stalled for run in runs], format_count),
        with_range([run.last_completed_seconds or 0.0 for run in runs], "{:.2f}".format),
        with_range([run.high_water_permits for run in runs], format_count),
    ]


def main() -> None:
    """Run the command line; if the limiter violates its rules, print a sentence and exit with 1."""
    try:
        app()
    except LimiterFaultError as error:
        sys.stderr.write(f"examples.hold_and_wait: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
