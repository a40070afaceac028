"""The figures that only a run beside silent clients has, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.results.latency import read_figures

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class SilentFigures:
    """The silent clients of a run, and the verdict on those beside them.

    Attributes:
        consumers: Silent clients that subscribe; the others publish.
        messages_wanted: Messages that silent producers would have published.
        messages_sent: Those that the server took, and what lies in the kernel's buffers.
        verdict: Whether producers were harmed, in a sentence.
    """

    producers: int
    consumers: int
    messages_wanted: int
    messages_sent: int
    producers_held_up: int
    producers_closed: int
    verdict: str


def parse_silent(document: Mapping[str, Any] | None) -> SilentFigures | None:
    """Turn what a summary says of silent clients into figures; None where it says nothing.

    Raises:
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    if document is None:
        return None
    return read_figures(SilentFigures, document, verdict=str(document["verdict"]))
