"""Survival: how near a server's JVM came to the end of its memory, beside what was answered.

A broker that refuses nobody and runs out of memory has not passed. A server in Java tells what its
heap and its direct memory hold, and what its options allow; of others nothing is said here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loadgen.jvm_options import JVM_OPTIONS
from loadgen.results.units import Unit, in_words
from loadgen.results.vocabulary import limit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.results.results import Results


class JvmPeak(NamedTuple):
    """The most of one memory of one server's JVM that a scrape met. Units: bytes.

    Attributes:
        limit: What its option allows; None: it is not known.
    """

    process: str
    memory: str
    peak: float
    limit: float | None

    @property
    def words(self) -> str:
        """It, and its share of the limit."""
        peak = f"{self.memory} memory at most {in_words(Unit.BYTES, self.peak)}"
        if self.limit is None:
            return f"{peak}, {JVM_OPTIONS[self.memory]} not known"
        share, limit = (
            in_words(*each) for each in ((Unit.SHARE, self.share), (Unit.BYTES, self.limit))
        )
        return f"{peak}, {share} of {JVM_OPTIONS[self.memory]} ({limit})"

    @property
    def share(self) -> float | None:
        """The part of the limit that was used."""
        return self.peak / self.limit if self.limit else None


def jvm_peaks(results: Results) -> Iterator[JvmPeak]:
    """Yield the peaks of each server in Java, heap first."""
    told = {(row["process"], row["figure"]): row["max"] for row in results.query("servers")}
    for process in dict.fromkeys(process for process, _ in told):
        for memory in JVM_OPTIONS:
            figure = f"jvm.{memory}.used"
            if (peak := told.get((process, figure))) is not None:
                limit = told.get((process, limit_of(figure)), 0.0)
                yield JvmPeak(process, memory, peak, limit if limit > 0 else None)


def survival(results: Results) -> str:
    """Say what was answered, and beside it what it took of each JVM; empty: none was watched."""
    peaks = [*jvm_peaks(results)]
    (total,) = results.query("all") or ({"requests": 0, "answered": 0},)
    if not peaks or not total["requests"]:
        return ""
    answered = in_words(Unit.SHARE, total["answered"] / total["requests"])
    servers = dict.fromkeys(each.process for each in peaks)
    of_each = (
        f"the {name}'s JVM had {', '.join(each.words for each in peaks if each.process == name)}"
        for name in servers
    )
    return f"{answered} of the requests were answered, and meanwhile {'; '.join(of_each)}."
