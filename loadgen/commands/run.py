"""``loadgen run``: drive the clients of a scenario against a broker or proxy."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loadgen.commands.run_options import run_parameters
from loadgen.commands.run_outcome import fail_if_invalid, show
from loadgen.commands.scenario_options import general_parameters, named_in, scenario_of
from loadgen.executors.processes import ExecutorKind
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenarios.registry import SCENARIOS
from loadgen.servers.loopback import require_own_cluster
from loadgen.servers.processes import termination_interrupts
from loadgen.tasks.progress import progress_display

if TYPE_CHECKING:
    from collections.abc import Callable

_EXIT_CODES = """\
Exit code 0: measured, whether answered or refused; 97: an answer was wrong;
98: this machine started the clients too late; 130: interrupted.
"""


def run(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON on standard output.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="A namespace may list no topics.")
    ] = False,
    yes_this_is_my_cluster: Annotated[
        bool,
        typer.Option("--yes-this-is-my-cluster", help="Allow an address beyond the loopback."),
    ] = False,
    **given: Any,  # noqa: ANN401
) -> None:
    """Drive clients against a broker or proxy, and check every answer."""
    scenario = scenario_of(given)
    require_own_cluster(scenario.service_url, confirmed=yes_this_is_my_cluster)
    settings = named_in(run_parameters, given)
    if settings["tasks"] is None:
        settings["tasks"] = min(2, scenario.clients)
    with_spark = settings["executor"] == ExecutorKind.SPARK
    first = "starting Spark, which takes some seconds" if with_spark else "connecting"
    display = progress_display(scenario.connections, sys.stderr, first=first, as_json=as_json)
    with termination_interrupts(), display as on_progress:
        result = execute(scenario, RunOptions(**settings, on_progress=on_progress))
    show(result, as_json=as_json)
    fail_if_invalid(result, scenario, allow_empty=allow_empty)


def _signature(*functions: Callable[..., object]) -> inspect.Signature:
    """Return the parameters of all functions, each once, as those of one command."""
    found: dict[str, inspect.Parameter] = {}
    for function in functions:
        for each in inspect.signature(function, eval_str=True).parameters.values():
            if each.kind is not inspect.Parameter.VAR_KEYWORD:
                found.setdefault(each.name, each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return inspect.Signature(list(found.values()))


_own_options = [kind.options for kind in SCENARIOS.values()]
_signed: Any = run
_signed.__signature__ = _signature(general_parameters, run_parameters, run, *_own_options)
_examples = "\n\n".join(kind.example for kind in SCENARIOS.values())
run.__doc__ = f"{run.__doc__}\n\nExamples:\n\n{_examples}\n\n{_EXIT_CODES}"
