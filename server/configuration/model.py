"""Configuration models, built from checked keys; pydantic's findings become sentences.

Fields whose value needs no conversion have Pulsar's key as their ``validation_alias``; the
remaining fields are passed by name. All errors are raised together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.configuration.known_keys import CheckedKeys

ModelT = TypeVar("ModelT", bound=BaseModel)


def build_model(
    model: type[ModelT], converted: Mapping[str, object], checked: CheckedKeys
) -> ModelT:
    """Make ``model`` from the keys of its aliases and from ``converted`` values.

    Args:
        model: A frozen model with a field ``notices``.
        converted: Values of the fields without alias, by field name.
        checked: The keys; its problems are raised together with the model's.

    Raises:
        ConfigError: Invalid configuration, with all problems.
    """
    plain = {
        field.validation_alias: checked.value(field.validation_alias)
        for field in model.model_fields.values()
        if isinstance(field.validation_alias, str)
    }
    values = {**plain, **converted, "notices": checked.finish()}
    problems = list(checked.problems)
    try:
        built = model.model_validate(values)
    except ValidationError as error:
        raise ConfigError([*problems, *problems_of(error)]) from None
    if problems:
        raise ConfigError(problems)
    return built


def problems_of(error: ValidationError) -> list[str]:
    """Return a sentence for every finding.

    A relation between two fields has no location, so its own message names both keys; the shown
    values are numbers and names, never secrets: no model has a secret field.
    """
    sentences = []
    for finding in error.errors(include_url=False, include_context=False):
        message = finding["msg"].removeprefix("Value error, ")
        key = ".".join(str(part) for part in finding["loc"])
        sentences.append(f"{key}={finding['input']!r}: {message}" if key else message)
    return sentences
