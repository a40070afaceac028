"""Groups of settings, whose fields are declared together with their configuration keys.

A group is a frozen dataclass. Each field is a row, which reads its key::

    class WatchSettings(Settings):
        max_bytes: int = Key("floodgateTopicWatchMaxBytes", floodgate=256 << 20, pulsar=0)

The default stands in the table of all keys, and in the row only where it differs from upstream's. A
part of the server holds the group itself, never a copy of its fields: a change at run time happens
in the group, and so reaches all who hold it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.configuration.key_types import Value
    from server.configuration.known_keys import CheckedKeys

    Convert: TypeAlias = Callable[[Any], object]

TABLE: Any = object()
"""Marks a key whose default is in the table of Pulsar's keys."""


def Key(
    name: str,
    convert: Convert | None = None,
    *,
    floodgate: Value = TABLE,
    pulsar: Value = TABLE,
    elsewhere: Value = TABLE,
    dynamic: bool = False,
) -> Any:
    """Declare a field whose value comes from a single configuration key.

    Args:
        name: The key.
        convert: Converts the key's value to the field's.
        floodgate: The default in profile ``floodgate``, as the key's value.
        pulsar: The default in profile ``pulsar``, as the key's value.
        elsewhere: The value in a server, broker or proxy, that does not have the key.
        dynamic: True if the key can change at run time here, although not in released Pulsar.
    """

    def read(checked: CheckedKeys) -> object:
        if elsewhere is not TABLE and not checked.knows(name):
            value = elsewhere
        else:
            default = pulsar if checked.pulsar_compatible else floodgate
            if default is not TABLE and not checked.is_set(name):
                checked.choose(name, default)
            value = checked.value(name)
        return value if convert is None else convert(value)

    return field(metadata={"read": read, "dynamic": (name,) if dynamic else ()})


def Read(read: Callable[[CheckedKeys], object], *dynamic: str) -> Any:
    """Declare a field whose value a function derives from configuration keys.

    Args:
        read: Returns the field's value, and reports problems.
        dynamic: The keys that profile ``floodgate`` can change at run time.
    """
    return field(metadata={"read": read, "dynamic": dynamic})


def Group(of: type[Settings]) -> Any:
    """Declare a field that is a group of settings."""
    return field(metadata={"read": of.of, "dynamic": tuple(of.dynamic_keys())})


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(Key, Read, Group, field)
)
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base class of groups of settings, whose fields are read from configuration keys."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def of(cls, checked: CheckedKeys, **others: object) -> Self:
        """Make the group from configuration keys; invalid values become problems of ``checked``.

        Args:
            checked: The configuration keys and values.
            others: The values of fields that are declared without a key.
        """
        rows = {row.name: row.metadata["read"] for row in fields(cls) if "read" in row.metadata}
        return cls(**{name: read(checked) for name, read in rows.items()}, **others)

    @classmethod
    def dynamic_keys(cls) -> Iterator[str]:
        """Yield the group's keys that can change at run time here, but not in released Pulsar."""
        for row in fields(cls):
            yield from row.metadata.get("dynamic", ())

    def copied(self) -> Self:
        """Return a deep copy of the group, which later changes of the group do not affect."""
        groups = {row.name: getattr(self, row.name) for row in fields(self)}
        copies = {
            name: group.copied() for name, group in groups.items() if isinstance(group, Settings)
        }
        return replace(self, **copies)

    def become(self, other: Self) -> None:
        """Copy the values of ``other`` into this group, for every object that refers to it."""
        for row in fields(self):
            mine, new = getattr(self, row.name), getattr(other, row.name)
            if isinstance(mine, Settings):
                mine.become(new)
            else:
                object.__setattr__(self, row.name, new)


def megabytes(number: int) -> int:
    """Convert megabytes to bytes."""
    return number << 20


def minutes(number: int) -> int:
    """Convert minutes to seconds."""
    return 60 * number


def milliseconds(number: int) -> float:
    """Convert milliseconds to seconds."""
    return number / 1000
