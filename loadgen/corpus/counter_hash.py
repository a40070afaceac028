"""A random number for every (seed, stream, counter): the same wherever and whenever it is asked.

SplitMix64 read as a function of its counter (Steele, Lea, Flood, "Fast splittable pseudorandom
number generators", 2014). No state, so rows do not depend on the order in which they are made.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

UInt64s: TypeAlias = npt.NDArray[np.uint64]

_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK64 = (1 << 64) - 1


def counter_hash(seed: int, stream: int, counters: UInt64s) -> UInt64s:
    """Return 64 random bits for each counter; streams of one seed are independent."""
    key = np.full(1, _key(seed, stream), dtype=np.uint64)
    return _mix(counters * np.uint64(_GAMMA) + key)


def fractions(seed: int, stream: int, counters: UInt64s) -> npt.NDArray[np.float64]:
    """Return an evenly distributed number of [0, 1) for each counter (53 bits)."""
    bits = counter_hash(seed, stream, counters) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def choices(
    seed: int, stream: int, counters: UInt64s, weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return for each counter an index into ``weights``, as often as its weight says."""
    edges = np.cumsum(weights) / np.sum(weights)
    picked = np.searchsorted(edges, fractions(seed, stream, counters), side="right")
    # The last edge may be an ulp below 1.
    return np.minimum(picked, len(weights) - 1).astype(np.int64)


def permuted32(key: int, indexes: UInt64s) -> UInt64s:
    """Return for distinct 32-bit indexes distinct, random-looking 32-bit numbers.

    MurmurHash3's 32-bit finalizer: every step of it can be undone, so nothing collides.
    """
    mask = np.uint64(0xFFFFFFFF)
    mixed = indexes ^ np.uint64(key & 0xFFFFFFFF)
    mixed = ((mixed ^ (mixed >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    mixed = ((mixed ^ (mixed >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return mixed ^ (mixed >> np.uint64(16))


def _key(seed: int, stream: int) -> int:
    """Return the starting point of one stream of a seed."""
    key = (seed * _GAMMA + stream * _MULTIPLIERS[0] + 1) & _MASK64
    return int(_mix(np.full(1, key, dtype=np.uint64))[0])


def _mix(values: UInt64s) -> UInt64s:
    """Apply SplitMix64's finalizer; multiplication wraps at 64 bits, as it must."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(_MULTIPLIERS[0])
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_MULTIPLIERS[1])
    return values ^ (values >> np.uint64(31))
