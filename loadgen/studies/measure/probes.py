"""The small loads by which a broker is measured: a document each, of behaviours that there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.documents.model import Document

if TYPE_CHECKING:
    from collections.abc import Sequence

PATTERN = ".*"
"""As of a consumer of everything: brokers match it behind ``persistent://tenant/namespace/``."""
_MOST_CLIENTS, _MOST_WATCHES = 4_000, 40
_LOOKUP_TOPIC, _LOOKUP_SECONDS = "loadgen-measure", 0.1


@dataclass(frozen=True)
class Probe:
    """One load.

    Attributes:
        name: That of its run.
        said: What is measured, for people.
        document: What is run.
        at_once: Requests under way.
    """

    name: str
    said: str
    document: Document
    at_once: int = 1


def probes(sized: Sequence[str], fresh: Sequence[str], seconds: float) -> tuple[Probe, ...]:
    """Return the loads that measure a broker, in their order.

    Args:
        sized: Namespaces of different sizes, the smallest first.
        fresh: Namespaces that nobody has looked a topic up in.
        seconds: How long each load lasts at most.
    """
    every = [*sized, *fresh]
    ends, smallest = (0, len(sized)), (0, 1)
    looked_up = (len(sized), len(every)) if fresh else ends

    def probe(name: str, said: str, at_once: int = 1, **group: Any) -> Probe:  # noqa: ANN401
        return Probe(name, said, _document(every, {"name": name, **group}, seconds), at_once)

    def lists(name: str, said: str, at_once: int, **more: Any) -> Probe:  # noqa: ANN401
        arrive = {"kind": "concurrency", "count": at_once}
        group = {"do": "list", "count": _MOST_CLIENTS, "namespaces": ends, "arrive": arrive}
        return probe(name, said, at_once, **group | more)

    return (
        probe(
            "lookups",
            "lookups, the first of a namespace and later ones",
            do="lookup",
            count=looked_up[1] - looked_up[0],
            namespaces=looked_up,
            arrive={"kind": "constant", "rate": 2 / _LOOKUP_SECONDS},
            every=_LOOKUP_SECONDS,
            topic=_LOOKUP_TOPIC,
        ),
        lists("alone", "lists, one at a time", 1),
        lists("small-64", "lists of the smallest namespace, 64 at once", 64, namespaces=smallest),
        lists("lists-8", "lists, 8 at once", 8),
        lists("lists-64", "lists, 64 at once", 64),
        lists("pattern", "lists with a pattern, one at a time", 1, pattern=PATTERN),
        lists("pattern-64", "lists with a pattern, 64 at once", 64, pattern=PATTERN),
        lists("watch", "watches, one at a time", 1, do="watch", count=_MOST_WATCHES),
    )


def _document(namespaces: Sequence[str], group: dict[str, Any], seconds: float) -> Document:
    return Document.model_validate(
        {
            "name": group["name"],
            "description": "Measures what a broker's work takes.",
            "topics": {"of": namespaces},
            "clients": [group],
            "phases": {"measure": seconds, "drain": seconds},
        }
    )
