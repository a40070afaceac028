"""The restarts of servers while a run lasted, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.results.latency import read_figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class ServerRestart:
    """A server that was killed and started again. Units: seconds since the agreed start.

    Attributes:
        restart: Which one.
        ready_seconds: When it took connections again.
        again_seconds: How long after the kill every client was answered again; None: not all were.
    """

    restart: str
    at_seconds: float
    ready_seconds: float
    again_seconds: float | None = None


def parse_restarts(documents: Iterable[Mapping[str, Any]]) -> tuple[ServerRestart, ...]:
    """Turn what a summary says of restarts into values.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    return tuple(
        read_figures(ServerRestart, each, restart=str(each["restart"])) for each in documents
    )
