"""Sentences about the errors in a scenario document.

Each sentence has the file and line, the key, the error, and what the author may have meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

from loadgen.documents.model import Document
from loadgen.errors import UsageError, meant, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from loadgen.documents.tree import Place, Written

_REASONS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "missing": "is missing",
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type"), "must be a mapping of keys to values"
    ),
    "tuple_type": "must be a list",
    **dict.fromkeys(("int_parsing", "int_from_float", "int_type"), "must be a whole number"),
    "int_parsing_size": "must be a whole number of fewer digits",
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    "bool_parsing": "must be true or false",
    "string_type": "must be a text: write it in quotes",
    "string_pattern_mismatch": "must be of letters a-z or A-Z, digits and . _ -, at most 80 of "
    "them, and begin with a letter or digit",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
}
"""Sentences for pydantic's faults, by pydantic's names."""
_PREFIX = "Value error, "
"""Pydantic's name of the faults with a sentence of ours."""
_TAGS = ("do", "kind")
"""Keys to decide the model of a mapping, among several models."""


@dataclass(frozen=True)
class Fault:
    """An error in a scenario document: the path of the wrong key, and a sentence on the error."""

    path: tuple[str | int, ...]
    sentence: str


class DocumentError(UsageError):
    """A scenario document is unusable because of errors.

    Attributes:
        sentences: A sentence for each error; the first is the message of the exception.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        rest = len(sentences) - 1
        more = f" (and {rest} more: loadgen scenarios check tells all)" if rest else ""
        super().__init__(f"{sentences[0]}{more}")
        self.sentences = tuple(sentences)


def document_error(tree: Written, faults: Iterable[Fault]) -> DocumentError:
    """Return an exception with all errors of a document, sorted by file and line.

    If the path of an error does not exist in the document, the error gets the file and line of the
    nearest existing value.
    """
    placed = [(*located(tree, fault.path), fault.sentence) for fault in faults]
    placed.sort(key=lambda each: (str(each[0].file), each[0].line))
    told = (f"{place}: {f'{key} {sentence}'.lstrip()}" for place, key, sentence in placed)
    return DocumentError(list(dict.fromkeys(told)))


def located(tree: Written, path: Sequence[str | int]) -> tuple[Place, str]:
    """Return the file and line of the value at a path, and the path as text: ``clients.go.count``.

    Parts other than keys, such as pydantic's names for the branches of a union, are skipped; the
    last existing part decides the place.
    """
    text, last = "", len(path) - 1
    for number, part in enumerate(path):
        inner = tree.at(part)
        if isinstance(part, int):
            name = inner.at("name") if inner else None
            named = name is not None and isinstance(name.value, str)
            text += f".{name.value}" if name and named else f"[{part}]"
        elif inner or number == last:
            text += f".{part}"
        tree = inner or tree
    return tree.place, text.removeprefix(".")


def fault_of(error: ErrorDetails) -> Fault:
    """Convert a pydantic error into a sentence with the path of the key."""
    path, kind, given = tuple(error["loc"]), error["type"], error["input"]
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return Fault(path, _unknown_key(path))
    if kind == "union_tag_not_found":
        tags = _tags_at(path)
        known = ", ".join(each.value for each in tags)
        return Fault(path, f"needs a {tags[0].key}; there are {known}")
    if kind == "union_tag_invalid":
        path = (*path, context["discriminator"].strip("'"))
        return Fault(path, _none(context["tag"], context["expected_tags"]))
    if kind == "literal_error" and isinstance(given, str):
        return Fault(path, _none(given, context["expected"]))
    words = _REASONS.get(kind)
    reason = words.format(**context) if words else error["msg"].removeprefix(_PREFIX)
    if kind == "missing" or not path or isinstance(given, dict | list | tuple):
        whole = words or not path or reason.startswith("must")
        return Fault(path, reason if whole else f"is not possible: {reason}")
    return Fault(path, f"{shown(given)}: {reason}")


def _none(given: str, expected: str) -> str:
    known = re.findall("'([^']+)'", expected)
    return f"{shown(given)} is none{meant(given, known)}"


def _unknown_key(path: tuple[str | int, ...]) -> str:
    """Return a sentence about an unknown key.

    The sentence names the behaviours with the key, or a similar key.
    """
    key, tags = str(path[-1]), _tags_at(path[:-2])
    owners = [each.value for each in tags if key in _keys_at((*path[:-2], each.value))]
    if owners and path[-2] in [each.value for each in tags]:
        tag = tags[0].key
        return f"is a key of {tag}: {' and '.join(owners)}, not of {tag}: {path[-2]}"
    return f"does not exist{meant(key, _keys_at(path[:-1]))}"


def _tags_at(path: Sequence[str | int]) -> list[_Tag]:
    return [tag for tag in map(_tag_of, _models_at(path)) if tag is not None]


# -- the keys of each part of a document, by models -----


class _Tag(NamedTuple):
    """A key and value to select a pydantic model among several, such as ``do: list``."""

    key: str
    value: str


def _tag_of(model: type[BaseModel]) -> _Tag | None:
    """Return the key and value to select a pydantic model; None if the model is the only one."""
    for key in _TAGS:
        if key in model.model_fields:
            return _Tag(key, get_args(model.model_fields[key].annotation)[0])
    return None


def _keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys allowed in a document for a pydantic model, each with the field."""
    return {
        info.alias or name: info
        for name, info in model.model_fields.items()
        if SkipJsonSchema not in map(type, info.metadata)
    }


def _models_at(path: Sequence[str | int]) -> list[type[BaseModel]]:
    """Return the possible pydantic models for the value at a path.

    Pydantic's paths contain the values of tags, such as ``list``; the tags select the model.
    """
    models: list[type[BaseModel]] = [Document]
    for part in (each for each in path if isinstance(each, str)):
        below = [
            inner
            for each in models
            if part in _keys_of(each)
            for inner in _models_in(_keys_of(each)[part].annotation)
        ]
        models = below or [each for each in models if part in (_tag_of(each) or ())[1:]]
    return list(dict.fromkeys(models))


def _keys_at(path: Sequence[str | int]) -> list[str]:
    """Return the allowed keys of the mapping at a path."""
    return list(dict.fromkeys(key for each in _models_at(path) for key in _keys_of(each)))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
