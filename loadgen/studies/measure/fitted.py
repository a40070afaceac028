"""Service times computed from measured requests, by least squares and medians."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.documents.service_times import PULSAR
from loadgen.errors import LoadgenError
from loadgen.results.results import Results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_ROUNDS = """SELECT regr_slope(first_byte - sent, topics) AS name,
  min_by(first_byte - sent, topics) AS small, min(topics) AS least, max(topics) AS most,
  max_by(done - sent, topics) AS large
FROM requests WHERE operation = 'list' AND outcome = 'answered'
GROUP BY client // :sizes HAVING count(*) = :sizes AND min(topics) < max(topics)
ORDER BY min(sent)"""
"""SQL for a line through the times of first bytes of a round: a request for each namespace.

Later bytes take the time of the network and the generator.
"""
_WINDOWS = """SELECT count(*) AS requests, sum(topics) AS names, sum(bytes) AS bytes,
  max(done) - min(before) AS seconds
FROM (SELECT topics, bytes, done, lag(done) OVER (ORDER BY done) AS before,
        ntile(6) OVER (ORDER BY done) AS part
      FROM requests WHERE operation = 'list' AND outcome = 'answered')
WHERE part > 1 GROUP BY part ORDER BY part"""
"""SQL for five parts of a parallel load, without the first sixth, which waited for connections."""
_LOOKUPS = """SELECT service_seconds AS seconds,
  row_number() OVER (PARTITION BY client ORDER BY sent) = 1 AS first
FROM requests WHERE operation = 'lookup' AND outcome = 'answered'"""
_WATCHES = """SELECT service_seconds AS seconds FROM requests
WHERE operation = 'watch' AND outcome = 'answered' AND namespace = :largest"""
_COUNTS = """SELECT count(*) AS asked, count_if(outcome = 'answered') AS answered,
  coalesce(mode(reason) FILTER (WHERE outcome <> 'answered'), '') AS reason FROM requests"""
_FEWEST = 3
_LEAST_BAND, _MOST_BAND = 2.0, 20.0
"""Least and greatest ratio by which a broker may be slower than measured.

Recorded storms took up to twice the times of single requests: garbage is collected, and threads
wait for a processor.
"""
_ONE_BY_ONE, _AT_ONCE = ("alone", "pattern"), ("small-64", "lists-8", "lists-64", "pattern-64")
"""Probes that send requests one by one, and probes that send them in parallel."""
_REQUEST = PULSAR.accept + 2 * (PULSAR.read + PULSAR.write)
"""The time of a list in virtual time on a connection of its own, without names. The rest of the
measured time is the time of names, so that the sum is the measured time.
"""


@dataclass(frozen=True)
class Figure:
    """A measured quantity: the median of its samples, and the range of 90 % of them."""

    value: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Figure:
        """Compute median and range of measured samples; negative samples count as 0."""
        kept = [max(0.0, each) for each in samples]
        cuts = quantiles(kept, n=20, method="inclusive") if len(kept) > 1 else kept * 2
        return cls(median(kept), cuts[0], cuts[-1], len(kept))

    def times(self, factor: float) -> Figure:
        """Return the quantity multiplied by a factor."""
        return Figure(factor * self.value, factor * self.low, factor * self.high, self.samples)

    def less(self, seconds: float) -> Figure:
        """Return the quantity reduced by ``seconds``, but at least 0."""
        value, low, high = (max(0.0, e - seconds) for e in (self.value, self.low, self.high))
        return Figure(value, low, high, self.samples)

    def over(self, *others: Figure) -> Figure:
        """Return the same median, with a range that includes the ranges of others."""
        every = (self, *others)
        low, high = min(each.low for each in every), max(each.high for each in every)
        return replace(self, low=low, high=high)


class Fitted(NamedTuple):
    """The service times and rates computed from the runs of the measuring loads.

    Attributes:
        times: Service times that clients can measure, by name.
        figures: Further figures, by words for people, in seconds or a number a second.
        refused: Sentences on probes with unanswered requests.
    """

    times: Mapping[str, Figure]
    figures: Mapping[str, Figure]
    refused: tuple[str, ...]

    @property
    def band(self) -> float:
        """The largest ratio of a slow to a median time for listing, matching and sending a name."""
        always = (self.times["list_name"], self.times["answer_name"])
        answers = [(*always, self.times[f"{each}_name"]) for each in ("match", "watch")]
        ratios = (
            sum(each.high for each in parts) / sum(each.value for each in parts)
            for parts in answers
            if any(each.value for each in parts)
        )
        return min(max(_LEAST_BAND, *ratios), _MOST_BAND)


def fitted(runs: Mapping[str, Path], sized: Sequence[str], *, fresh: bool) -> Fitted:
    """Compute service times from the runs of the measuring loads.

    Args:
        runs: Run directories, by the names of the probes.
        sized: Namespaces of different sizes, the largest last.
        fresh: Whether lookups were the first in their namespaces.

    Raises:
        LoadgenError: Too few answers for service times.
    """
    refused = {name: _refused(directory) for name, directory in runs.items()}

    def ask(probe: str, question: str, fewest: int = 1, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        with Results.open(runs[probe]) as results:
            found = results.sql(question, **values)
        if len(found) < fewest:
            raise LoadgenError(
                f"too little was answered to measure {probe}: give it more time with --seconds, or "
                f"smaller namespaces{f' ({refused[probe]})' if refused[probe] else ''}"
            )
        return found

    first = [row["seconds"] for row in ask("lookups", _LOOKUPS) if row["first"]]
    # A watch begins with a lookup, in a namespace with earlier lookups.
    later = Figure.of([row["seconds"] for row in ask("watch", _LOOKUPS)])
    watches = [row["seconds"] for row in ask("watch", _WATCHES, largest=sized[-1])]
    alone, matched = (ask(each, _ROUNDS, _FEWEST, sizes=len(sized)) for each in _ONE_BY_ONE)
    loads = {each: ask(each, _WINDOWS, _FEWEST) for each in _AT_ONCE}
    warm = alone[len(alone) // 2 :]
    list_alone = Figure.of([each["name"] for each in warm])
    matched_alone = Figure.of([each["name"] - list_alone.value for each in matched])
    large = median(each["large"] for each in warm)
    small = median(each["seconds"] / each["requests"] for each in loads["small-64"])

    def names(probe: str, request: float = _REQUEST) -> list[float]:
        """Return the seconds that each topic name took, in each part of a load."""
        return [(w["seconds"] - request * w["requests"]) / w["names"] for w in loads[probe]]

    def rate(probe: str) -> Figure:
        return Figure.of([each["names"] / each["seconds"] for each in loads[probe]])

    per_100_bytes = {
        probe: 100 * sum(w["names"] for w in loads[probe]) / sum(w["bytes"] for w in loads[probe])
        for probe in ("lists-64", "pattern-64")
    }
    # Many requests for a namespace share a listing, so that together they take their answers' time,
    # on all threads. A small list may take the generator's time: then answers took longer than
    # computed.
    answered, *others = (
        Figure.of(names(*probe)).times(PULSAR.threads)
        for probe in (("lists-64",), ("lists-8",), ("lists-64", small))
    )
    matching = [PULSAR.threads * each - answered.value for each in names("pattern-64")]
    times = {
        "list_wait": Figure.of(
            [each["small"] - list_alone.value * each["least"] - later.value for each in warm]
        ),
        "list_name": list_alone.less(answered.value).times(per_100_bytes["lists-64"]),
        "answer_name": answered.over(*others).times(per_100_bytes["lists-64"]),
        "match_name": Figure.of(matching).over(matched_alone).times(per_100_bytes["pattern-64"]),
        "watch_name": Figure.of([(each - large) / warm[0]["most"] for each in watches]).times(
            per_100_bytes["pattern-64"]
        ),
    }
    if fresh:
        times["first_lookup"] = Figure.of([each - later.value for each in first])
    figures = {
        "first list of the largest namespace": Figure.of([alone[0]["large"]]),
        "later ones, one at a time": Figure.of([each["large"] for each in warm]),
        "with a pattern": Figure.of([each["large"] for each in matched]),
        "a watch of it": Figure.of(watches),
        "a lookup": later,
        "names a second, 64 at once": rate("lists-64"),
        "names a second with a pattern, 64 at once": rate("pattern-64"),
        "connections with a list a second, at least": Figure.of([1 / small]),
    }
    return Fitted(times, figures, tuple(filter(None, refused.values())))


def _refused(directory: Path) -> str:
    """Return words on how many requests of a run got no answer and why; empty if all did."""
    with Results.open(directory) as results:
        (counts,) = results.sql(_COUNTS)
    if not (missing := counts["asked"] - counts["answered"]):
        return ""
    asked, reason = counts["asked"], counts["reason"]
    return f"{directory.name}: {missing:,} of {asked:,} got no answer: {reason}"
