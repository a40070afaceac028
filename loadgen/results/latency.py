"""Latency percentiles of answered requests, and how figures are read from a document."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from _typeshed import DataclassInstance

FiguresT = TypeVar("FiguresT", bound="DataclassInstance")

_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999, "max": 1.0}


def percentiles(values: Iterable[float]) -> dict[str, float] | None:
    """Return the summary's percentiles by nearest rank, or None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return {name: nearest_rank(ordered, share) for name, share in _PERCENTILES.items()}


@dataclass(frozen=True)
class Latency:
    """Answered requests only, from the intended start to the last byte. Units: seconds."""

    p50: float
    p99: float
    max: float


def parse_latency(document: Mapping[str, Any] | None) -> Latency | None:
    """Turn a summary's percentiles into figures; None where nothing was answered.

    Raises:
        KeyError: A field is missing.
    """
    if not document or document.get("p50") is None:
        return None
    return read_figures(Latency, document)


def read_figures(kind: type[FiguresT], document: Mapping[str, Any], **others: Any) -> FiguresT:  # noqa: ANN401
    """Make a value of a document's numbers and of ``others``; what has a default may be missing.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is no number.
    """
    named = [each for each in fields(kind) if each.name not in others]
    wanted = [each.name for each in named if each.default is MISSING or each.name in document]
    unknown = {each.name for each in named if "None" in str(each.type)}  # may be null
    for name in wanted:
        known = document[name] is not None or name not in unknown
        if known and not isinstance(document[name], int | float):
            raise TypeError(name)
    return kind(**others, **{name: document[name] for name in wanted})


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return the least of sorted values that a share of them does not exceed: a percentile.

    Args:
        ordered: At least one value.
        share: From 0 to 1.
    """
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[max(rank, 1) - 1]
