"""Checks of what a program says about a message: each error names the argument and its remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def checked_number(name: str, value: object) -> int:
    """Return a number that is not negative.

    Raises:
        TypeError: It is another thing.
        ValueError: It is out of range.
    """
    kind = "a number from 0 on"
    if not isinstance(value, int):
        raise _refusal(name, kind, value)
    if not 0 <= value < 2**63:
        raise ValueError(str(_refusal(name, kind, value)))
    return value


def checked_text(name: str, value: object) -> str:
    """Return a text.

    Raises:
        TypeError: It is another thing.
    """
    if not isinstance(value, str):
        raise _refusal(name, "a str", value)
    return value


def checked_texts(name: str, value: object) -> tuple[str, ...]:
    """Return several texts.

    Raises:
        TypeError: They are another thing.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _refusal(name, "a list of str", value)
    return tuple(checked_text(name, text) for text in value)


def checked_properties(value: object) -> dict[str, str]:
    """Return a copy: the program may change its own while the message waits.

    Raises:
        TypeError: They are no names and values of text.
    """
    if not isinstance(value, Mapping):
        raise _refusal("properties", "a dict of str", value)
    return {
        checked_text("a property's name", key): checked_text(f"the property {key!r:.50}", text)
        for key, text in value.items()
    }


def _refusal(name: str, kind: str, value: object) -> TypeError:
    return TypeError(f"{name} is {kind}, not {value!r:.50}")
