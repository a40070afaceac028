"""The named distributions of a corpus: how long names are, how many partitions topics have.

Each is a function of the seed and an id alone. Only sums and products of what the counter hash
gives decide, never a logarithm, so that they come out the same on every processor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from loadgen.corpus.counter_hash import UInt64s, choices, fractions
from proto.names import MAX_PARTITIONS

if TYPE_CHECKING:
    import numpy.typing as npt

FEWEST_PARTITIONS = 3
MOST_PARTITIONS = 64
FEW, ONE_TOPIC = "few", "one-topic"
_ZIPF = "zipf:"
PARTITIONS = (
    f"{FEW} ({FEWEST_PARTITIONS} to {MOST_PARTITIONS}, small counts more often), "
    f"{_ZIPF}EXPONENT (1 to {MOST_PARTITIONS}), a number, or {ONE_TOPIC} (a namespace is one topic)"
)
"""The words that name a distribution of partitions, for people."""
EVEN, FIXED, LONG_TAIL = "even", "fixed", "long-tail"
LENGTHS = (EVEN, FIXED, LONG_TAIL)
LONGEST_NAME_BYTES = 512
_PARTITION_COUNTS = np.array([3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64])
_EVEN_SPREAD = 12
# A long tail: quantiles of a log-normal law (sigma 0.35), in parts of its mean.
_TAIL = np.array([0.33, 0.53, 0.62, 0.70, 0.77, 0.84, 0.91, 0.98, 1.07, 1.18, 1.34, 1.58, 2.7])


def zipf_weights(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return 1 / rank^exponent for the ranks 1 to ``count``; all alike with exponent 0."""
    ranks = np.arange(1, count + 1, dtype=np.float64)
    return np.asarray(1.0 / ranks**exponent, dtype=np.float64)


def dealt(total: int, weights: npt.NDArray[np.float64]) -> list[int]:
    """Deal a number of things to takers: one each, the rest in proportion to their weights."""
    shares = np.cumsum(weights) / weights.sum() * (total - len(weights))
    counts = np.diff(np.rint(shares).astype(np.int64), prepend=0)
    return [1 + int(count) for count in counts]


def checked_partitions(text: str) -> str:
    """Return the name of a distribution of partitions if it is one.

    Raises:
        ValueError: It is none.
    """
    if text in (FEW, ONE_TOPIC):
        return text
    if text.isdecimal() and len(text) < 7 and 1 <= int(text) <= MAX_PARTITIONS:
        return text
    if re.fullmatch(rf"{_ZIPF}\d(\.\d+)?", text) and float(text.removeprefix(_ZIPF)) <= 3:
        return text
    raise ValueError(f"The partitions are {text[:40]!r}; they must be {PARTITIONS}.")


def partition_counts(
    name: str, seed: int, stream: int, first_id: int, names: int
) -> npt.NDArray[np.int64]:
    """Return the partitions of topics that have ``names`` partitions together, or a few fewer.

    What is left when the next topic would have too many is a last topic of its own, if that is not
    fewer partitions than the distribution knows.
    """
    if name == ONE_TOPIC or names == 0:
        return np.array([names] if names else [], dtype=np.int64)
    fewest = FEWEST_PARTITIONS if name == FEW else 1
    most_topics = names // (fewest if not name.isdecimal() else int(name)) + 1
    ids = np.arange(first_id, first_id + most_topics, dtype=np.uint64)
    drawn = _drawn(name, seed, stream, ids)
    ends = np.cumsum(drawn)
    whole = int(np.searchsorted(ends, names, side="right"))
    counts = drawn[:whole].astype(np.int64)
    left = names - int(counts.sum())
    return np.append(counts, left) if left >= fewest else counts


def _drawn(name: str, seed: int, stream: int, ids: UInt64s) -> npt.NDArray[np.int64]:
    if name.isdecimal():
        return np.full(len(ids), int(name))
    if name == FEW:
        # Small topics are more common: a count is as likely as it is small.
        weights = 1.0 / _PARTITION_COUNTS.astype(np.float64)
        return _PARTITION_COUNTS[choices(seed, stream, ids, weights)]
    weights = zipf_weights(MOST_PARTITIONS, float(name.removeprefix(_ZIPF)))
    return choices(seed, stream, ids, weights) + 1


def length_spread(
    name: str, seed: int, stream: int, ids: UInt64s, mean: float
) -> npt.NDArray[np.float64]:
    """Return for each id how much longer than the mean its name is, in bytes."""
    if name == FIXED:
        return np.zeros(len(ids))
    drawn = fractions(seed, stream, ids)
    if name == EVEN:
        return (drawn * 2 - 1) * _EVEN_SPREAD
    place = drawn * (len(_TAIL) - 1)
    left = place.astype(np.int64)
    factors = _TAIL[left] + (_TAIL[left + 1] - _TAIL[left]) * (place - left)
    middles = (_TAIL[1:] + _TAIL[:-1]) / 2
    return np.asarray(mean * (factors / middles.mean() - 1), dtype=np.float64)
