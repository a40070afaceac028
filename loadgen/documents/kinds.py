"""The kinds of scenarios that a document may name, and which keys each part of one has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from loadgen.scenarios.registry import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic.fields import FieldInfo

    from loadgen.scenario import Scenario

MODELS: dict[str, type[Scenario]] = {name: kind.model for name, kind in SCENARIOS.items()}
_ELSEWHERE = ("kind", "service_url", "admin_url")
"""Fields of a scenario that are not of its load: the head's, and those of the command line."""


def load_fields(kind: str) -> list[str]:
    """Return the keys that the load of a kind may have."""
    fields = MODELS[kind].model_fields
    sums = ("clients",) if "groups" in fields else ()  # a sum of the groups'
    return [field for field in fields if field not in (*_ELSEWHERE, *sums)]


def is_in_documents_only(field: str, info: FieldInfo) -> bool:
    """Tell whether a field has parts of its own, so that no option of a command can say it."""
    return not field.endswith("namespaces") and any(_models_in(info.annotation))


def keys_below(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Return the keys of the part of a model that a path of pydantic's leads to."""
    models = [model]
    for part in (each for each in path if isinstance(each, str)):
        below = [
            inner
            for each in models
            if part in each.model_fields
            for inner in _models_in(each.model_fields[part].annotation)
        ]
        # pydantic names the branch of a union as well, by its kind.
        models = below or [each for each in models if _kind(each) == part]
    return list(dict.fromkeys(key for each in models for key in each.model_fields))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _kind(model: type[BaseModel]) -> Any:  # noqa: ANN401
    field = model.model_fields.get("kind")
    return get_args(field.annotation)[0] if field else None
