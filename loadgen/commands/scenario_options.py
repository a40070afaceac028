"""The options of ``loadgen run`` that make a scenario; a wrong one becomes one sentence."""

from __future__ import annotations

import inspect
from enum import StrEnum
from pathlib import Path  # noqa: TC003 (the command line evaluates it)
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from loadgen.corpus.expectations import expected_namespaces
from loadgen.errors import UsageError
from loadgen.scenarios.registry import SCENARIOS
from loadgen.sizes import rate_of, rate_text, size_of, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadgen.scenario import Scenario

ScenarioName = StrEnum("ScenarioName", list(SCENARIOS))  # type: ignore[misc]
_DEFAULT = next(iter(ScenarioName))

_REASONS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""Sentences for the faults that pydantic finds, by its names for them."""


def _defaults(field: str, write: Callable[[float], str] = "{:g}".format) -> str:
    """Return the default of a field in the first scenario, and in others where it differs."""
    found = {
        name: write(kind.model.model_fields[field].default) for name, kind in SCENARIOS.items()
    }
    first = found[_DEFAULT]
    others = [f"{name}: {text}" for name, text in found.items() if text != first]
    return "; ".join([first, *others])


def general_parameters(  # noqa: PLR0913 (each parameter is an option of the command)
    service_url: Annotated[
        str, typer.Option(help="Binary address of the broker or proxy: pulsar://host:port.")
    ],
    scenario: Annotated[
        ScenarioName,
        typer.Option(
            metavar="TEXT",
            help=" ".join(f"{name}: {kind.help}" for name, kind in SCENARIOS.items()),
        ),
    ] = _DEFAULT,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Directory that `loadgen topics` wrote: its manifest names the namespaces and "
            "what a right answer holds.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace to ask for (tenant/namespace); repeat for more. Without a corpus "
            "answers are checked against their own hash and each other.",
            show_default=False,
        ),
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Connections.", show_default=_defaults("clients"))
    ] = None,
    read_rate: Annotated[
        str | None,
        typer.Option(
            help="How fast each client reads, bytes a second; 0 is unlimited.",
            show_default=_defaults("read_rate_bytes_per_second", rate_text),
        ),
    ] = None,
    receive_buffer: Annotated[
        str | None,
        typer.Option(
            help="SO_RCVBUF of each connection, bytes; 0 leaves the kernel's.",
            show_default=_defaults("receive_buffer_bytes", size_text),
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(help="Topics pattern that the server evaluates.", show_default=False),
    ] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option(
            help="How long a client waits for its answer.",
            show_default=_defaults("timeout_seconds"),
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the parameters that every scenario has; None is what was not given.

    Raises:
        UsageError: A size is none, or there is nothing to ask for.
    """
    del scenario  # it decides which model takes the parameters
    return {
        "service_url": service_url,
        "namespaces": expected_namespaces(corpus, namespace or []),
        "clients": clients,
        "read_rate_bytes_per_second": rate_of("--read-rate", read_rate),
        "receive_buffer_bytes": size_of("--receive-buffer", receive_buffer),
        "pattern": pattern,
        "timeout_seconds": timeout_seconds,
    }


def named_in(function: Callable[..., dict[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function with those of the given options that it names."""
    names = inspect.signature(function).parameters
    return function(**{name: given[name] for name in names})


def scenario_of(given: Mapping[str, Any]) -> Scenario:
    """Return the scenario that options of the command line make.

    Raises:
        UsageError: An option is out of its range, or belongs to another scenario.
    """
    parameters = named_in(general_parameters, given)
    for kind in SCENARIOS.values():
        parameters |= named_in(kind.options, given)
    return make_scenario(given["scenario"], **parameters)


def make_scenario(name: str, **given: Any) -> Scenario:  # noqa: ANN401
    """Return a scenario of the parameters given; those that are None take their defaults.

    Raises:
        UsageError: A parameter is out of its range, or belongs to another scenario.
    """
    model = SCENARIOS[name].model
    parameters = {field: value for field, value in given.items() if value is not None}
    foreign = [field for field in parameters if field not in model.model_fields]
    if foreign:
        owner = next(k.name for k in SCENARIOS.values() if foreign[0] in k.model.model_fields)
        raise UsageError(
            f"{option_of(foreign[0])} belongs to --scenario {owner}: leave it out with {name}"
        )
    try:
        return model(**parameters)
    except ValidationError as error:
        raise UsageError(_sentence(error.errors()[0])) from None


def _sentence(error: Mapping[str, Any]) -> str:
    words = _REASONS.get(error["type"])
    reason = words.format(**error["ctx"]) if words else str(error["msg"])
    reason = reason.removeprefix("Value error, ")
    if not error["loc"]:  # it is about several options and names them
        return reason
    return f"{option_of(str(error['loc'][0]))} {error['input']!r}: {reason}"


def option_of(field: str) -> str:
    """Return the option that sets a scenario's field: its name without a unit, in the singular."""
    name = field.removesuffix("_bytes_per_second").removesuffix("_bytes")
    if name.endswith("namespaces"):
        name = name.removesuffix("s")
    return f"--{name.replace('_', '-')}"
