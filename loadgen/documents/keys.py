"""The keys that each part of a document has, by its models: for faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

from loadgen.documents.model import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic.fields import FieldInfo

TAGS = ("do", "kind")
"""Keys that say which model a mapping is of, where there are several."""


class Tag(NamedTuple):
    """Which of several models a mapping is of: ``do: list``."""

    key: str
    value: str


def tag_of(model: type[BaseModel]) -> Tag | None:
    """Return what tells a model from its siblings; None if it has none."""
    for key in TAGS:
        if key in model.model_fields:
            return Tag(key, get_args(model.model_fields[key].annotation)[0])
    return None


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys that a document may have of a model."""
    return {
        info.alias or name: info
        for name, info in model.model_fields.items()
        if SkipJsonSchema not in map(type, info.metadata)
    }


def models_at(path: Sequence[str | int]) -> list[type[BaseModel]]:
    """Return the models that what stands at a path may be of.

    A part that is a tag's value, as pydantic puts them into its paths, chooses among them.
    """
    models: list[type[BaseModel]] = [Document]
    for part in (each for each in path if isinstance(each, str)):
        below = [
            inner
            for each in models
            if part in keys_of(each)
            for inner in _models_in(keys_of(each)[part].annotation)
        ]
        models = below or [each for each in models if part in (tag_of(each) or ())[1:]]
    return list(dict.fromkeys(models))


def keys_at(path: Sequence[str | int]) -> list[str]:
    """Return the keys that what stands at a path may have."""
    return list(dict.fromkeys(key for each in models_at(path) for key in keys_of(each)))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
