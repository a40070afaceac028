"""The faults of a document as sentences: where, which key, what is wrong, what was meant."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from loadgen.documents.tree import place_of
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails, ValidationError

    from loadgen.documents.tree import Branch

_REASONS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "missing": "is missing",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "tuple_type": "must be a list",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text: write it in quotes",
    "union_tag_not_found": "needs a kind",
    "union_tag_invalid": "has the kind {tag!r}; there are {expected_tags}",
}
"""Sentences for the faults that pydantic finds, by its names for them."""
_PREFIX = "Value error, "
"""Of a sentence of our own, which pydantic only passes on."""
_LONGEST_VALUE = 60
_SHORTEST_COMMON = 4


@dataclass(frozen=True)
class Fault:
    """One fault: the path of its key in the document, and what is wrong with it."""

    path: tuple[str | int, ...]
    sentence: str


class DocumentError(UsageError):
    """A document cannot be used.

    Attributes:
        sentences: All its faults; the error itself says the first.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        rest = len(sentences) - 1
        more = f" (and {rest} more: loadgen scenarios check tells all)" if rest else ""
        super().__init__(f"{sentences[0]}{more}")
        self.sentences = tuple(sentences)


def document_error(tree: Branch, faults: Iterable[Fault], whole: str) -> DocumentError:
    """Return the error of some faults; ``whole`` is named where a fault has no place."""
    told = dict.fromkeys(
        f"{place_of(tree, fault.path) or whole}: {_said(tree, fault)}" for fault in faults
    )
    return DocumentError(list(told))


def _said(tree: Branch, fault: Fault) -> str:
    key = _key_of(tree, fault.path)
    return f"{key} {fault.sentence}" if key else fault.sentence


def _key_of(tree: Any, path: Sequence[str | int]) -> str:  # noqa: ANN401
    """Write a path as ``load.groups[2].clients``, without what is no key of the document."""
    text, last = "", len(path) - 1
    for number, part in enumerate(path):
        inside = isinstance(tree, dict) and part in tree
        if isinstance(part, int):
            text += f"[{part}]"
            tree = tree[part] if isinstance(tree, list) and part < len(tree) else None
        elif inside or number == last:
            text += f".{part}"
            tree = tree[part] if inside else None
    return text.removeprefix(".")


def fault_of(
    error: ErrorDetails, keys: Mapping[tuple[str | int, ...], Sequence[str]] | None = None
) -> Fault:
    """Return the fault that pydantic found.

    Args:
        error: As pydantic tells it.
        keys: The keys that exist, by the path of what has them, for a misspelt one.
    """
    path = tuple(error["loc"])
    kind = error["type"]
    if kind == "extra_forbidden":
        return Fault(path, f"does not exist{meant(str(path[-1]), (keys or {}).get(path[:-1], ()))}")
    words, reason = kind in _REASONS, reason_of(error)
    if kind == "missing" or not path or isinstance(error["input"], dict | list):
        return Fault(path, reason if words or not path else f"is not possible: {reason}")
    return Fault(path, f"{shown(error['input'])}: {reason}")


def reason_of(error: ErrorDetails) -> str:
    """Say what is wrong with a value, without the value."""
    words = _REASONS.get(error["type"])
    return words.format(**error.get("ctx", {})) if words else error["msg"].removeprefix(_PREFIX)


def option_reason(found: ValidationError) -> str:
    """Say what is wrong with the value of an option, with the value."""
    error = found.errors()[0]
    reason = reason_of(error)
    return f"{shown(error['input'])} {reason}" if error["type"] in _REASONS else reason


def shown(value: Any) -> str:  # noqa: ANN401
    """Write a value that was given, cut short; the words of YAML as they are there."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def meant(name: str, known: Sequence[str]) -> str:
    """Return what may have been meant by a name that nobody knows, as the end of a sentence."""
    near = get_close_matches(name, known, 1, 0.6) or [
        each for each in known if len(name) >= _SHORTEST_COMMON and each.startswith(name)
    ]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(known)}" if known else ""
