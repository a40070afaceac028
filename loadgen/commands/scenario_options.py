"""From the options of ``loadgen run`` to a scenario; what does not fit becomes one sentence."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loadgen.commands.sizes import parse_rate, parse_size
from loadgen.corpus.manifest import MANIFEST_NAME, read_manifest
from loadgen.errors import UsageError
from loadgen.scenario import NamespaceExpectation, StormScenario
from loadgen.scenarios.stuck.scenario import StuckScenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.corpus.manifest import NamespaceEntry
    from loadgen.tasks.plan import AnyScenario


class ScenarioKind(StrEnum):
    """What the clients do."""

    STORM = "storm"
    STUCK = "stuck"


_SCENARIOS: dict[ScenarioKind, type[AnyScenario]] = {
    ScenarioKind.STORM: StormScenario,
    ScenarioKind.STUCK: StuckScenario,
}
_OPTIONS = {
    "namespaces": "--namespace",
    "stuck_namespaces": "--stuck-namespace",
    "read_rate_bytes_per_second": "--read-rate",
    "receive_buffer_bytes": "--receive-buffer",
    "stuck_read_rate_bytes_per_second": "--stuck-read-rate",
    "stuck_receive_buffer_bytes": "--stuck-receive-buffer",
}

_REASONS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""Sentences for the faults that pydantic finds, by its names for them."""


def make_scenario(kind: ScenarioKind, **given: Any) -> AnyScenario:  # noqa: ANN401
    """Return a scenario of what was given; None is what was not, and takes its default.

    Raises:
        UsageError: A parameter is out of its range, or belongs to another scenario.
    """
    scenario = _SCENARIOS[kind]
    parameters = {name: value for name, value in given.items() if value is not None}
    foreign = [name for name in parameters if name not in scenario.model_fields]
    if foreign:
        owner = next(each for each in ScenarioKind if foreign[0] in _SCENARIOS[each].model_fields)
        raise UsageError(
            f"{option_of(foreign[0])} belongs to --scenario {owner}: leave it out with {kind}"
        )
    try:
        return scenario(**parameters)
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
    """Return the option that sets a scenario's field."""
    return _OPTIONS.get(field, f"--{field.replace('_', '-')}")


def rate_of(option: str, text: str | None) -> float | None:
    """Return bytes a second of what an option was given, None if it was not given.

    Raises:
        UsageError: It is not a speed.
    """
    return None if text is None else parse_rate(option, text)


def size_of(option: str, text: str | None) -> int | None:
    """Return bytes of what an option was given, None if it was not given.

    Raises:
        UsageError: It is not a size.
    """
    return None if text is None else int(parse_size(option, text))


def wanted_namespaces(
    corpus: Path | None, names: Sequence[str], option: str = "--namespace"
) -> tuple[NamespaceExpectation, ...]:
    """Return what to ask for: the corpus's namespaces, those named, or those named of a corpus.

    Raises:
        UsageError: Nothing is named, or the corpus does not hold it.
    """
    if corpus is None:
        if not names:
            raise UsageError("name what to ask for: --corpus DIR, or --namespace tenant/namespace")
        return tuple(_expectation(name, None) for name in names)
    known = read_manifest(corpus).namespaces
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"{option} {missing[0]} is not in {corpus / MANIFEST_NAME}")
    return tuple(_expectation(name, known[name]) for name in names or known)


def _expectation(name: str, entry: NamespaceEntry | None) -> NamespaceExpectation:
    try:
        if entry is None:
            return NamespaceExpectation(name=name)
        return NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(reason) from None


def stuck_namespaces(
    corpus: Path | None, names: Sequence[str] | None
) -> tuple[NamespaceExpectation, ...] | None:
    """Return what stuck peers ask for if it was named; None: the same as the healthy clients.

    Raises:
        UsageError: The corpus does not hold it.
    """
    if not names:
        return None
    return wanted_namespaces(corpus, names, "--stuck-namespace")
