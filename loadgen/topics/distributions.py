"""Random numbers, distributions and words for generated topics, computed without state.

Each value is a function of a seed and an id alone. Only sums and products of the counter hash are
used, never a logarithm, so that the values are the same on every processor.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from proto.names import MAX_PARTITIONS

UInt64s: TypeAlias = npt.NDArray[np.uint64]

FEWEST_PARTITIONS = 3
MOST_PARTITIONS = 64
FEW, ONE_TOPIC = "few", "one-topic"
_ZIPF = "zipf:"
PARTITIONS = (
    f"{FEW} ({FEWEST_PARTITIONS} to {MOST_PARTITIONS}, small counts more often), "
    f"{_ZIPF}EXPONENT (1 to {MOST_PARTITIONS}), a number, or {ONE_TOPIC} (a namespace is one topic)"
)
"""Names of the distributions of partitions, for people."""
EVEN, FIXED, LONG_TAIL = "even", "fixed", "long-tail"
LENGTHS = (EVEN, FIXED, LONG_TAIL)
LONGEST_NAME_BYTES = 512
_PARTITION_COUNTS = np.array([3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64])
EVEN_SPREAD = 12
# A long tail: quantiles of a log-normal law (sigma 0.35), in parts of the mean.
_TAIL = np.array([0.33, 0.53, 0.62, 0.70, 0.77, 0.84, 0.91, 0.98, 1.07, 1.18, 1.34, 1.58, 2.7])
_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK64 = (1 << 64) - 1

# -- Words: invented names in the style of a large cluster --------------------------------------
TENANTS = (
    "payments", "orders", "logistics", "identity", "catalog", "telemetry", "marketing", "billing",
    "search", "fraud", "inventory", "pricing", "support", "mobility", "media", "insurance",
    "loyalty", "warehouse", "checkout", "messaging", "analytics", "devices", "booking", "content",
)  # fmt: skip
APPLICATIONS = (
    "ledger", "gateway", "events", "ingest", "audit", "sync", "stream", "export",
    "history", "alerts", "profile", "session", "routing", "metering", "archive", "staging",
)  # fmt: skip
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east")
SUBJECTS = (
    "order", "invoice", "payment", "refund", "shipment", "parcel", "customer", "account",
    "device", "sensor", "vehicle", "session", "basket", "price", "stock", "ticket",
    "message", "profile", "contract", "claim", "voucher", "route", "driver", "meter",
)  # fmt: skip
EVENTS = (
    "created", "updated", "deleted", "accepted", "rejected", "settled", "shipped", "returned",
    "opened", "closed", "started", "stopped", "reading", "snapshot", "command", "retry",
)  # fmt: skip
SQUADS = ("core", "edge", "data", "platform", "risk", "growth", "partners", "mobile")
ENVIRONMENTS = ("prod", "staging", "dev", "test")
TIERS = ("gold", "silver", "bronze")


# -- Random numbers -------------------------------------------------------------------------------


def counter_hash(seed: int, stream: int, counters: UInt64s) -> UInt64s:
    """Return 64 random bits for each counter; streams of the same seed are independent.

    SplitMix64 as a function of the counter (Steele, Lea, Flood, "Fast splittable pseudorandom
    number generators", 2014). It has no state, so the rows do not depend on the order in which they
    are generated.
    """
    key = np.full(1, _key(seed, stream), dtype=np.uint64)
    return _mix(counters * np.uint64(_GAMMA) + key)


def fractions(seed: int, stream: int, counters: UInt64s) -> npt.NDArray[np.float64]:
    """Return a uniform random number in [0, 1), of 53 bits, for each counter."""
    bits = counter_hash(seed, stream, counters) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def choices(
    seed: int, stream: int, counters: UInt64s, weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return a random index into ``weights`` for each counter, in proportion to the weights."""
    edges = np.cumsum(weights) / np.sum(weights)
    picked = np.searchsorted(edges, fractions(seed, stream, counters), side="right")
    # The last edge may be an ulp below 1.
    return np.minimum(picked, len(weights) - 1).astype(np.int64)


def permuted32(key: int, indexes: UInt64s) -> UInt64s:
    """Map distinct 32-bit numbers to distinct 32-bit numbers that look random.

    The function is the finalizer of 32-bit MurmurHash3, in which every step is invertible, so no
    two numbers collide.
    """
    mask = np.uint64(0xFFFFFFFF)
    mixed = indexes ^ np.uint64(key & 0xFFFFFFFF)
    mixed = ((mixed ^ (mixed >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    mixed = ((mixed ^ (mixed >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return mixed ^ (mixed >> np.uint64(16))


def _key(seed: int, stream: int) -> int:
    """Return the number from which the stream of random numbers of a seed begins."""
    key = (seed * _GAMMA + stream * _MULTIPLIERS[0] + 1) & _MASK64
    return int(_mix(np.full(1, key, dtype=np.uint64))[0])


def _mix(values: UInt64s) -> UInt64s:
    """Apply the finalizer of SplitMix64, whose multiplications have to wrap around at 64 bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(_MULTIPLIERS[0])
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_MULTIPLIERS[1])
    return values ^ (values >> np.uint64(31))


# -- Distributions -------------------------------------------------------------------------------


def zipf_weights(count: int, exponent: float) -> npt.NDArray[np.float64]:
    """Return the weight 1 / rank^exponent of each rank up to ``count``; equal for exponent 0."""
    ranks = np.arange(1, count + 1, dtype=np.float64)
    return np.asarray(1.0 / ranks**exponent, dtype=np.float64)


def dealt(total: int, weights: npt.NDArray[np.float64]) -> list[int]:
    """Distribute ``total`` items in proportion to weights, at least one each; return counts."""
    shares = np.cumsum(weights) / weights.sum() * (total - len(weights))
    counts = np.diff(np.rint(shares).astype(np.int64), prepend=0)
    return [1 + int(count) for count in counts]


def checked_partitions(text: str) -> str:
    """Check the name of a distribution of partition counts, such as ``few``, and return it.

    Raises:
        ValueError: The name is unknown.
    """
    known = text in (FEW, ONE_TOPIC)
    if re.fullmatch(r"\d{1,6}", text):
        known = 1 <= int(text) <= MAX_PARTITIONS
    elif re.fullmatch(rf"{_ZIPF}\d(\.\d+)?", text):
        known = float(text.removeprefix(_ZIPF)) <= 3
    if known:
        return text
    raise ValueError(f"The partitions are {text[:40]!r}; they must be {PARTITIONS}.")


def partition_counts(
    name: str, seed: int, stream: int, first_id: int, names: int
) -> npt.NDArray[np.int64]:
    """Return the partition counts of topics that together have about ``names`` partitions.

    The remaining partitions become a last topic, unless they are fewer than the distribution's
    smallest count.
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
        # Small topics are more common: the probability is inverse to the count.
        weights = 1.0 / _PARTITION_COUNTS.astype(np.float64)
        return _PARTITION_COUNTS[choices(seed, stream, ids, weights)]
    weights = zipf_weights(MOST_PARTITIONS, float(name.removeprefix(_ZIPF)))
    return choices(seed, stream, ids, weights) + 1


def length_spread(
    name: str, seed: int, stream: int, ids: UInt64s, mean: float
) -> npt.NDArray[np.float64]:
    """Return for each topic the number of bytes by which its name is longer than the mean."""
    if name == FIXED:
        return np.zeros(len(ids))
    drawn = fractions(seed, stream, ids)
    if name == EVEN:
        return (drawn * 2 - 1) * EVEN_SPREAD
    place = drawn * (len(_TAIL) - 1)
    left = place.astype(np.int64)
    factors = _TAIL[left] + (_TAIL[left + 1] - _TAIL[left]) * (place - left)
    middles = (_TAIL[1:] + _TAIL[:-1]) / 2
    return np.asarray(mean * (factors / middles.mean() - 1), dtype=np.float64)
