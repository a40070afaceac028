"""The keys that each part of a document has, by its models: for faults, and for the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

from loadgen.documents.model import Document
from loadgen.documents.server_keys import known_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic.fields import FieldInfo

TAGS = ("do", "kind")
"""Keys that say which model a mapping is of, where there are several."""
_SERVER_KEYS = (("servers", "broker"), ("servers", "proxy"))


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


def complete_path(text: str, document: Document | None = None) -> list[str]:
    """Return the paths of settings that begin with a text, one step of them.

    Args:
        text: What was typed so far.
        document: The one that settings are laid over: its groups have names.

    Returns:
        Paths; one that ends in a dot goes on.
    """
    above, dot, _ = text.rpartition(".")
    parts = above.split(".") if above else []
    groups = {} if document is None else {each.name: each.do for each in document.clients}
    if parts == ["clients"]:
        found = [f"{name}." for name in groups]
    elif tuple(parts) in _SERVER_KEYS:
        found = [each.key for each in known_keys(parts[1])]
    else:
        if parts[:1] == ["clients"]:
            parts[1] = groups.get(parts[1], "")
            parts = [each for each in parts if each]
        found = [
            f"{key}." if models_at(path := (*parts, key)) or path in _SERVER_KEYS else key
            for key in keys_at(parts)
        ]
    return [each for each in (f"{above}{dot}{key}" for key in found) if each.startswith(text)]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
