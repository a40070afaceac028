"""Types of configuration keys, which parse values as Pulsar's configuration loader does.

Java's printed defaults (``Optional[6650]``, ``Optional.empty``, ``[a, b]``, ``null``) are read as
the values they represent.

Source: org.apache.pulsar.common.util.FieldParser.
Differs: a boolean other than true and false is refused (Java reads it as false).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from server.configuration.loaded_class import is_class_path

Value: TypeAlias = "int | float | bool | str | tuple[str, ...] | None"

NO_PORT = "Optional.empty"
"""A disabled port, as printed by Java."""
_INT_RANGE = (-(2**31), 2**31 - 1)
_LONG_RANGE = (-(2**63), 2**63 - 1)
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_SUFFIXED = re.compile(r"([0-9]{1,10})([kKmM])[bB]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?[dDfF]?", re.ASCII)
_SUFFIX_BYTES = {"k": 1024, "m": 1024 * 1024}


@dataclass(frozen=True)
class KnownKey:
    """A configuration key with its type, range and default.

    Attributes:
        key: The key in the file.
        type: Java's type: int, long, double, boolean, String, Set, List, Optional<...> or an enum.
        default: Upstream's default, as printed by Java; None without a default.
        dynamic: True if Pulsar can change the value at run time.
        deprecated: True if Pulsar still reads the key, but recommends another.
        min: Smallest allowed number.
        max: Largest allowed number.
        required: True if Pulsar does not start without the key.
        values: The values of an enum; empty for other types.
        or_class: True if a class, ``module:Class``, is allowed besides ``values``.
        suffixes: True if ``64k`` and ``1m`` are read as bytes, with a warning.
    """

    key: str
    type: str
    default: str | None
    dynamic: bool = False
    deprecated: bool = False
    min: int | None = None
    max: int | None = None
    required: bool = False
    values: tuple[str, ...] = ()
    suffixes: bool = False
    or_class: bool = False

    @cached_property
    def default_value(self) -> Value:
        """The key's default, parsed to the key's type; None without a default."""
        return None if self.default is None else self._typed(self.default.strip())

    @property
    def is_port(self) -> bool:
        """True if the key sets a port to listen on, which may be disabled."""
        return self.type == "Optional<Integer>" and "Port" in self.key

    def parse(self, text: str) -> Value:
        """Parse a value of this key; an empty text and ``null`` mean the default.

        Raises:
            ValueError: Not of this key's type or out of its range. The message names key, value and
                expected values.
        """
        stripped = text.strip()
        if stripped in ("", "null"):
            return self.default_value
        try:
            return self._typed(stripped)
        except ValueError:
            raise ValueError(f"{self.key}={_shown(stripped)}: expected {self.expected}") from None

    @property
    def expected(self) -> str:
        """A phrase that describes the key's valid values, to end an error message."""
        if self.values:
            own = ", or a class of Python, module:Class" if self.or_class else ""
            return f"one of {', '.join(self.values)}{own}"
        if self.type in ("boolean", "Boolean"):
            return "true or false"
        if self.type in ("Set", "List"):
            return "names separated by commas"
        kind = "a number" if self.type in ("double", "Optional<Double>") else "a whole number"
        return f"{kind}{self._range_sentence()}"

    def same_as_default(self, value: Value) -> bool:
        """Return True if ``value`` equals the key's default; a Set may be in any order."""
        default = self.default_value
        if isinstance(default, tuple) and isinstance(value, tuple) and self.type == "Set":
            return set(default) == set(value)
        return value == default or (value in ("", ()) and default in (None, "", ()))

    def _typed(self, text: str) -> Value:
        if self.values:
            own = self.or_class and is_class_path(text)
            return text if own else _choice(text, self.values)
        if self.type.startswith("Optional"):
            return self._optional(text)
        if self.type in ("int", "Integer", "long", "Long"):
            return self._whole(text)
        if self.type == "double":
            return self._decimal(text)
        if self.type in ("boolean", "Boolean"):
            return _boolean(text)
        return _names(text) if self.type in ("Set", "List") else text

    def _optional(self, text: str) -> Value:
        if text == NO_PORT:
            return None
        if text.startswith("Optional[") and text.endswith("]"):
            text = text[len("Optional[") : -1].strip()
        return self._decimal(text) if self.type == "Optional<Double>" else self._whole(text)

    def _whole(self, text: str) -> int:
        suffixed = _SUFFIXED.fullmatch(text) if self.suffixes else None
        if suffixed:
            value = int(suffixed.group(1)) * _SUFFIX_BYTES[suffixed.group(2).lower()]
        elif _WHOLE.fullmatch(text):
            value = int(text)
        else:
            raise ValueError(text)
        low, high = self._range()
        if not low <= value <= high:
            raise ValueError(text)
        return value

    def _decimal(self, text: str) -> float:
        if not _DECIMAL.fullmatch(text):
            raise ValueError(text)
        value = float(text.rstrip("dDfF"))
        if not math.isfinite(value) or (self.min is not None and value < self.min):
            raise ValueError(text)
        return value

    def _range(self) -> tuple[int, int]:
        low, high = _LONG_RANGE if self.type in ("long", "Long") else _INT_RANGE
        return (
            low if self.min is None else self.min,
            high if self.max is None else self.max,
        )

    def _range_sentence(self) -> str:
        if self.type in ("double", "Optional<Double>") and self.min is None:
            return ""
        low, high = self._range()
        return f" from {low} to {high}"


def _choice(text: str, values: tuple[str, ...]) -> str:
    # Upstream requires the exact spelling; another case or "_" for "-" is unambiguous.
    folded = {_folded(value): value for value in values}
    if _folded(text) not in folded:
        raise ValueError(text)
    return folded[_folded(text)]


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    if text.startswith("[") != text.endswith("]"):
        raise ValueError(text)
    inner = text[1:-1] if text.startswith("[") else text
    return tuple(name.strip() for name in inner.split(",") if name.strip())


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}...")
