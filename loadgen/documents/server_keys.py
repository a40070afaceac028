"""Checks of a scenario's server configuration keys before any server starts."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from loadgen.documents.model import key_text
from server.configuration.authentication import literal_refusal
from server.configuration.known_keys import KnownKeys
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "{folder}"
"""Placeholder in a value for a temporary folder of the run."""


def server_key_faults(role: str, keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each wrong configuration key, and the reason: it is unknown, unreadable or a secret."""
    known = known_keys(role)
    for key, given in keys.items():
        value = key_text(given)
        if not isinstance(value, str):
            continue
        if literal_refusal(key, value):
            yield key, f"is a secret: leave it to the file of --{role}-conf"
        if refusal := known.refusal(key):
            yield key, f"is unknown to the {role}; {refusal.partition('; ')[2]}"
        for problem in known.check({key: value}).problems:
            yield key, f"cannot be read: {problem}"


@cache
def known_keys(role: str) -> KnownKeys:
    """Return the configuration keys that a broker, or a proxy, supports."""
    keys = resources.files(module_name(role)).joinpath(f"{role}_keys.json")
    return KnownKeys.from_json(keys.read_text(encoding="utf-8"))
