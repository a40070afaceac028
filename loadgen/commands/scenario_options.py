"""The options of ``loadgen run`` that make a scenario: one for each field of its model."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from loadgen.documents.faults import reason_of
from loadgen.documents.kinds import is_in_documents_only
from loadgen.errors import UsageError
from loadgen.scenario import Scenario
from loadgen.scenarios.registry import SCENARIOS
from loadgen.topics.manifest import expected_namespaces
from loadgen.units import parse_rate, parse_size, rate_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

DEFAULT_KIND = next(iter(SCENARIOS))
_SPEED, _SIZE, _NAMES = "_bytes_per_second", "_bytes", "namespaces"
_CORPUS = typer.Option(
    help="Directory that `loadgen topics` wrote: its manifest names the namespaces and what a "
    "right answer holds.",
    show_default=False,
)


def scenario_parameters() -> Iterator[inspect.Parameter]:
    """Yield the options that every scenario has, then those of each scenario alone."""
    general = [_parameter(field) for field in Scenario.model_fields if field != "kind"]
    yield general[0]
    kinds = " ".join(f"{name}: {kind.help}" for name, kind in SCENARIOS.items())
    said = (
        "The same as the argument; with --service-url, a kind with its own defaults "
        f"(without either, {DEFAULT_KIND}). {kinds}"
    )
    choice = Annotated[str | None, typer.Option(metavar="TEXT", help=said, show_default=False)]
    yield _keyword("scenario", choice, None)
    yield _keyword("corpus", Annotated[Path | None, _CORPUS], None)
    yield from general[1:]
    # A field of several scenarios is one option.
    for field in _option_fields():
        if field not in Scenario.model_fields:
            owners = [name for name, k in SCENARIOS.items() if field in k.model.model_fields]
            yield _parameter(field, f"Scenario {', '.join(owners)}")


def _option_fields() -> list[str]:
    """Return the fields of all scenarios that are options, each once."""
    fields = {
        field: None
        for kind in SCENARIOS.values()
        for field, info in kind.model.model_fields.items()
        if field != "kind" and not is_in_documents_only(field, info)
    }
    return list(fields)


def _parameter(field: str, panel: str | None = None) -> inspect.Parameter:
    models = [kind.model for kind in SCENARIOS.values() if field in kind.model.model_fields]
    described = Scenario if field in Scenario.model_fields else models[0]
    info = described.model_fields[field]
    option = typer.Option(
        option_of(field),
        help=_help(field, info),
        show_default=False,
        rich_help_panel=panel,
    )
    kind: Any = info.annotation
    if field.endswith(_NAMES):
        kind = list[str]
    elif field.endswith((_SPEED, _SIZE)) or field == "pattern":
        kind = str  # read by the model
    return _keyword(field, Annotated[kind | None, option], None)


def _help(field: str, info: FieldInfo) -> str:
    """Return a description with its defaults, that typer would put in two brackets."""
    default = _default(field)
    return f"{info.description} \\[default: {default}]" if default else str(info.description)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, annotation=annotation, default=default)


def _default(field: str) -> str:
    """Return the default of a field in the first scenario, and in others where it differs."""
    fields = {name: kind.model.model_fields for name, kind in SCENARIOS.items()}
    texts = {n: _default_text(field, each[field]) for n, each in fields.items() if field in each}
    first = next(iter(texts.values()))
    return "; ".join([first, *(f"{n}: {text}" for n, text in texts.items() if text != first)])


def _default_text(field: str, info: FieldInfo) -> str:
    if isinstance(info.json_schema_extra, dict):
        return str(info.json_schema_extra["default"])
    if field.endswith(_SPEED):
        return rate_text(info.default)
    if field.endswith(_SIZE):
        return size_text(info.default)
    if isinstance(info.default, str):
        return info.default
    return f"{info.default:g}" if isinstance(info.default, int | float) else ""


def scenario_of(given: Mapping[str, Any]) -> Scenario:
    """Return the scenario that options of the command line make.

    Raises:
        UsageError: An option is out of its range, or belongs to another scenario.
    """
    name = given["scenario"] or DEFAULT_KIND
    corpus, parameters = given["corpus"], given_fields(given)
    fields = SCENARIOS[name].model.model_fields
    if given["service_url"] is None and fields["service_url"].is_required():
        raise UsageError("--service-url is missing: name a broker or proxy, pulsar://host:port")
    if corpus or given["namespaces"] or fields["namespaces"].is_required():
        parameters["namespaces"] = expected_namespaces(corpus, given["namespaces"] or [])
    return make_scenario(name, **parameters)


def given_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that set a field; those that were not given are None."""
    return {field: _value(field, given[field], given["corpus"]) for field in _option_fields()}


def _value(field: str, given: Any, corpus: Path | None) -> Any:  # noqa: ANN401
    """Return the value of a field from the text of its option; None if that was not given."""
    if given is None or given == []:
        return None
    if field.endswith(_NAMES):
        return expected_namespaces(corpus, given, option_of(field))
    if field.endswith(_SPEED):
        return parse_rate(option_of(field), given)
    if field.endswith(_SIZE):
        return int(parse_size(option_of(field), given))
    return given


def make_scenario(name: str, **given: Any) -> Scenario:  # noqa: ANN401
    """Return a scenario of the parameters given; those that are None take their defaults.

    Raises:
        UsageError: A parameter is out of its range, or belongs to another scenario.
    """
    model = SCENARIOS[name].model
    parameters = {field: value for field, value in given.items() if value is not None}
    require_own(parameters, model, name)
    try:
        return model(**parameters)
    except ValidationError as error:
        raise UsageError(option_sentence(error)) from None


def require_own(parameters: Mapping[str, Any], model: type[Scenario], name: str) -> None:
    """Refuse options that another kind of scenario has.

    Raises:
        UsageError: There is one.
    """
    foreign = [field for field in parameters if field not in model.model_fields]
    if foreign:
        owner = next(k.name for k in SCENARIOS.values() if foreign[0] in k.model.model_fields)
        raise UsageError(
            f"{option_of(foreign[0])} belongs to --scenario {owner}: leave it out with {name}"
        )


def option_sentence(found: ValidationError) -> str:
    """Say the first fault that pydantic found in the values of options."""
    error = found.errors()[0]
    reason = reason_of(error)
    if not error["loc"]:  # it is about several options and names them
        return reason
    return f"{option_of(str(error['loc'][0]))} {error['input']!r}: {reason}"


def option_of(field: str) -> str:
    """Return the option that sets a scenario's field: its name without a unit, in the singular."""
    name = field.removesuffix("_bytes_per_second").removesuffix("_bytes")
    if name.endswith("namespaces"):
        name = name.removesuffix("s")
    return f"--{name.replace('_', '-')}"
