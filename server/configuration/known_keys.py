"""Pulsar's configuration keys, and the validation of a configuration.

All wrong values are reported together. Unknown keys and keys without effect here are no errors in a
file, since an operator's existing file is used unchanged: each kind is one log line. On the command
line an unknown key is a mistake, and refused.

Invariant: a key "has no effect here" exactly when no configuration model has read it.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Literal, NamedTuple

from server.configuration.key_types import NO_PORT, KnownKey, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Keys of both roles with an unsupported protection: ignoring a key would leave a server open that
# its operator believes closed.
REFUSED_WHEN_TRUE = {
    "haProxyProtocolEnabled": "the HAProxy protocol",
    "webServiceHaProxyProtocolEnabled": "the HAProxy protocol",
}

# Upstream passes keys with these prefixes to its clients, whatever follows.
PASSED_ON_PREFIXES = ("bookkeeper_", "brokerClient_")
# The operator chooses the names of the proxy's keys with this prefix.
REVERSE_PROXY_PREFIX = "httpReverseProxy."
_FREE_PREFIXES = (*PASSED_ON_PREFIXES, REVERSE_PROXY_PREFIX)

# Most keys named in a log line.
MAX_KEYS_NAMED = 50
MAX_KEY_LENGTH = 100


class Notice(NamedTuple):
    """A sentence about the configuration, logged at startup."""

    level: Literal["info", "warning"]
    sentence: str


class KnownKeys:
    """All configuration keys of a broker or of a proxy, with types and defaults."""

    def __init__(self, keys: Iterable[KnownKey]) -> None:
        self._by_name = {known.key: known for known in keys}
        self._lower = {name.lower(): name for name in self._by_name}

    @classmethod
    def from_json(cls, text: str) -> KnownKeys:
        """Parse the packaged list of keys: a JSON array of objects with KnownKey's fields."""
        return cls(
            KnownKey(**{**entry, "values": tuple(entry.get("values", ()))})
            for entry in json.loads(text)
        )

    def __iter__(self) -> Iterator[KnownKey]:
        return iter(self._by_name.values())

    def __contains__(self, key: str) -> bool:
        return key in self._by_name

    def __getitem__(self, key: str) -> KnownKey:
        return self._by_name[key]

    def check(self, properties: Mapping[str, str]) -> CheckedKeys:
        """Validate a configuration; collect its problems and notices instead of raising."""
        checked = CheckedKeys(self, properties)
        unknown: list[str] = []
        for key, text in properties.items():
            known = self._by_name.get(key)
            if known is not None:
                checked.take(known, text)
            elif not key.startswith(_FREE_PREFIXES):
                unknown.append(key)
        if unknown:
            # Suggestions are costly, so only the named keys get a suggestion.
            named = [self._with_suggestion(key) for key in unknown[:MAX_KEYS_NAMED]]
            checked.warn(f"unknown keys, ignored: {_listed(named + unknown[MAX_KEYS_NAMED:])}")
        return checked

    def refusal(self, key: str) -> str | None:
        """Return an error if ``--set`` names an unknown key; None if the key is known.

        In a file an unknown key is only a warning, as it may be meant for another program.
        """
        if key in self._by_name or key.startswith(_FREE_PREFIXES):
            return None
        suggestion = self._suggestion(key)
        remedy = f"did you mean {suggestion}?" if suggestion else "correct or remove it"
        return f"--set {key[:MAX_KEY_LENGTH]}: unknown key; {remedy}"

    def _with_suggestion(self, key: str) -> str:
        suggestion = self._suggestion(key)
        key = key[:MAX_KEY_LENGTH]
        return f"{key} (did you mean {suggestion}?)" if suggestion else key

    def _suggestion(self, key: str) -> str | None:
        wanted = key[:MAX_KEY_LENGTH].lower()
        close = difflib.get_close_matches(wanted, self._lower, n=1, cutoff=0.75)
        return self._lower[close[0]] if close else None


class CheckedKeys:
    """A validated configuration: the typed value of every known key, set or default.

    Attributes:
        properties: The keys and values as written; never shown, as some are secrets.
        problems: Sentences that make the configuration unusable.
        notices: Sentences to log at the start.

    The mutable state is both lists, the values, and the set of keys that were read.
    """

    def __init__(self, known: KnownKeys, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)
        self.problems: list[str] = []
        self.notices: list[Notice] = []
        self._known = known
        self._given: dict[str, Value] = {}
        self._chosen: dict[str, Value] = {}
        self._read: set[str] = set()

    def take(self, known: KnownKey, text: str) -> None:
        """Parse and store the value that the configuration gives to a key.

        An invalid value becomes a problem, and the default is used instead.

        An empty value, and ``null``, mean the default, like a missing key. An empty port is
        disabled, as upstream: the operator's intention is a closed port.
        """
        if text.strip() == "" and known.is_port:
            text = NO_PORT
        if text.strip() in ("", "null"):
            return
        try:
            value = known.parse(text)
        except ValueError as error:
            self.refuse(str(error))
            return
        self._given[known.key] = value
        if known.suffixes and text.strip()[-1:].isalpha():
            self.warn(
                f"{known.key}={text.strip()} is read as {value} bytes; Pulsar itself accepts "
                "only a whole number of bytes"
            )

    def refuse(self, sentence: str) -> None:
        """Record a problem that makes the configuration unusable, unless already recorded."""
        if sentence not in self.problems:
            self.problems.append(sentence)

    def warn(self, sentence: str) -> None:
        """Record a warning about the configuration to log at startup, unless already recorded."""
        notice = Notice("warning", sentence)
        if notice not in self.notices:
            self.notices.append(notice)

    def inform(self, sentence: str) -> None:
        """Record a sentence about the configuration, to log at startup at level info."""
        self.notices.append(Notice("info", sentence))

    def knows(self, key: str) -> bool:
        """Return True if this kind of server (broker or proxy) has a key of that name."""
        return key in self._known

    def is_set(self, key: str) -> bool:
        """Return True if the configuration sets the key to a valid value."""
        return key in self._given

    @property
    def pulsar_compatible(self) -> bool:
        """True if floodgateProfile is ``pulsar``."""
        return self.text("floodgateProfile") == "pulsar"

    def choose(self, key: str, value: Value) -> None:
        """Override a key's value by one that depends on the profile or the machine."""
        self._chosen[key] = value

    def shown(self, key: str) -> str:
        """Return a key's effective value as text."""
        value = self.value(key)
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    def as_given(self, key: str) -> str:
        """Return a key's value as the operator wrote it, or else its effective value as text."""
        text = self.properties.get(key, "").strip()
        if key in self._chosen:
            return self.shown(key)
        return text if text not in ("", "null") else self._known[key].default or ""

    def value(self, key: str) -> Value:
        """Return a key's effective value, and record that some code has read the key."""
        self._read.add(key)
        for values in (self._chosen, self._given):
            if key in values:
                return values[key]
        return self._known[key].default_value

    def integer(self, key: str) -> int:
        """Return a key's value as a whole number."""
        value = self.value(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{key} is not a whole number")
        return value

    def flag(self, key: str) -> bool:
        """Return a key's value as a boolean; False if the key has neither value nor default."""
        return self.value(key) is True

    def text(self, key: str) -> str | None:
        """Return a key's value as a string; None if empty."""
        value = self.value(key)
        return value if isinstance(value, str) and value else None

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names listed by a key; a String is split at commas."""
        value = self.value(key)
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value if isinstance(value, tuple) else ()

    def without_effect(self) -> tuple[str, ...]:
        """Return the keys that are not at their default although no code has read them."""
        return tuple(
            key
            for key, value in self._given.items()
            if key not in self._read and not self._known[key].same_as_default(value)
        )

    def finish(self) -> tuple[Notice, ...]:
        """Return all notices to log, with an added one about keys without effect."""
        ignored = self.without_effect()
        if ignored:
            self.inform(f"keys without effect here: {_listed(ignored)}")
        return tuple(self.notices)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - MAX_KEYS_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(names[:MAX_KEYS_NAMED]) + more


def refuse_true(checked: CheckedKeys, keys: Mapping[str, str]) -> None:
    """Report a problem for each of ``keys`` that is true, as the feature is unsupported."""
    for key, feature in keys.items():
        if checked.flag(key):
            checked.refuse(f"{key}=true: this version does not support {feature}; set it to false")
