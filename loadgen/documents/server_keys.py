"""The configuration keys of a document's servers, looked at before any server is started."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from loadgen.documents.faults import Fault
from server.configuration.known_keys import KnownKeys
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.cluster import ClusterPlan

FOLDER = "{folder}"
"""Stands in a value for a folder of the run's own, which is gone after it."""


def server_key_faults(cluster: ClusterPlan) -> Iterator[Fault]:
    """Yield the faults of both servers' keys: unknown ones and values that cannot be read."""
    for role, keys in (("broker", cluster.broker), ("proxy", cluster.proxy or {})):
        known = known_keys(role)
        for key, value in keys.items():
            path = ("cluster", role, key)
            if refusal := known.refusal(key):
                yield Fault(path, f"is unknown to the {role}; {refusal.partition('; ')[2]}")
            for problem in known.check({key: value}).problems:
                yield Fault(path, f"cannot be read: {problem}")


@cache
def known_keys(role: str) -> KnownKeys:
    """Return the keys of ``broker`` or ``proxy``."""
    keys = resources.files(module_name(role)).joinpath(f"{role}_keys.json")
    return KnownKeys.from_json(keys.read_text(encoding="utf-8"))
