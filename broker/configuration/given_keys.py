"""The configuration keys as an operator gave them, before those set at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class GivenKeys:
    """The given keys with their values as text; never shown, as some are secrets.

    Two configurations that mean the same are equal however they were written, so that these are
    always equal.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __repr__(self) -> str:
        return f"<GivenKeys {len(self._values)} keys>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenKeys)

    def __hash__(self) -> int:
        return hash(GivenKeys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, key: str) -> str | None:
        """Return the value that a key was given; None for none."""
        return self._values.get(key)

    def with_values(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return all keys and values, with some replaced."""
        return {**self._values, **values}
