"""Chance that is decided by a seed, at sixteen bytes a client: Python's own has 2,500."""

from __future__ import annotations

_MASK = 2**64 - 1


class Chance:
    """Returns numbers from 0 to 1, the same ones for the same seed.

    Source: SplitMix64, in the public domain.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def __call__(self) -> float:
        """Return the next number."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) * 2**-53
