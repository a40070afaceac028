"""The words of the report for clients that read nothing, and for the healthy ones beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.units import plural

if TYPE_CHECKING:
    from loadgen.results.stuck import StuckFigures
    from loadgen.results.summary import RunSummary


@dataclass(frozen=True)
class PeerWords:
    """A scenario's words.

    Attributes:
        request: What healthy clients send on a schedule.
        peer: What a client that does not read is called.
        healthy: Those beside it.
        there: Says that such clients were there.
    """

    request: str
    peer: str
    healthy: str
    there: str

    def requests(self, count: int) -> str:
        """Return a number of requests in words."""
        return plural(count, self.request)

    def peers(self, figures: StuckFigures) -> str:
        """Return how many peers there were, in words."""
        return plural(figures.peers, self.peer)


LISTINGS = PeerWords("listing", "non-reading client", "healthy clients", "a client reads nothing")
MESSAGES = PeerWords("message", "silent client", "producers that read", "clients are silent")


def words_of(summary: RunSummary) -> PeerWords:
    """Return the words for a run."""
    return LISTINGS if summary.silent is None else MESSAGES
