"""An index of the patterns of many watches, which finds all patterns that match a topic name.

Patterns are grouped in sets of 64, or fewer large patterns; RE2 matches a set in one pass over the
name (about 2 us). A changed set is compiled in a step of ``compiling``, or on the next match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import re2

from broker.patterns.pattern import Backtracking, LinearTime, compile_pattern, re2_compiled
from broker.topic_lists.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable

    from broker.patterns.pattern import RegexImplementation, TopicsPattern

SET_PATTERNS = 64
"""Patterns matched in one pass: compiling a set takes about 10 us for each."""
SET_INSTRUCTIONS = 8_192
"""Total instructions of a set's patterns, or of a larger single pattern: about 2 ms to compile, and
as much again if RE2 finds the set too large and the patterns are compiled separately.
"""
SET_BYTES = 1 << 20
"""RE2's memory for one set, including memory for matching."""
_ALWAYS = r"(?s:.*)"

Key = TypeVar("Key", bound="Hashable")


class PatternIndex(Generic[Key]):
    """An index of patterns by key, such as a watch; equal patterns are matched only once.

    Patterns unsupported by RE2 are kept separately, without evaluation: their time is unknown.

    The mutable state is the patterns, their keys and the compiled sets.
    """

    def __init__(self) -> None:
        self._patterns: dict[Key, TopicsPattern] = {}
        self._all: dict[Key, None] = {}
        self._linear: dict[str, _Slot[Key]] = {}
        self._backtracking: dict[str, dict[Key, None]] = {}
        self._sets: list[_PatternSet[Key]] = []

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, key: Key, pattern: str, implementation: RegexImplementation) -> None:
        """Add a client's pattern under a key, in place of the key's earlier pattern.

        Raises:
            InvalidPatternError: The pattern cannot be compiled; the index is unchanged.
        """
        compiled = compile_pattern(pattern, implementation)
        self.discard(key)
        self._patterns[key] = compiled
        self._keys_of(compiled)[key] = None

    def discard(self, key: Key) -> None:
        """Remove a key and its pattern; may be called repeatedly."""
        pattern = self._patterns.pop(key, None)
        if pattern is None:
            return
        keys = self._keys_of(pattern)
        del keys[key]
        if not keys:
            self._forget(pattern)

    def compiling(self) -> Generator[None, None, None]:
        """Compile the sets whose patterns have changed; a generator that yields after each set.

        Many patterns may have been added since the last match.
        """
        for one in tuple(self._sets):
            if one.compile():
                yield

    def matching(self, name: bytes) -> list[Key]:
        """Return the keys of all patterns that match a full topic name.

        Patterns that require a backtracking engine are not evaluated.
        """
        path = path_of(name)
        keys = list(self._all)
        for one in self._sets:
            for slot in one.matching(path):
                keys.extend(slot.keys)
        return keys

    @property
    def backtracking(self) -> list[Key]:
        """The keys of patterns that require a backtracking engine."""
        return [key for keys in self._backtracking.values() for key in keys]

    def _keys_of(self, pattern: TopicsPattern) -> dict[Key, None]:
        """Return the dict of a pattern's keys, which the caller changes; index a new pattern."""
        if isinstance(pattern, Backtracking):
            return self._backtracking.setdefault(pattern.text, {})
        if not isinstance(pattern, LinearTime):
            return self._all
        slot = self._linear.get(pattern.whole)
        if slot is None:
            home = self._set_with_room(pattern.program_size)
            slot = _Slot(pattern.whole, pattern.program_size, home)
            self._linear[pattern.whole] = slot
            home.add(slot)
        return slot.keys

    def _set_with_room(self, size: int) -> _PatternSet[Key]:
        for one in reversed(self._sets):
            if one.has_room(size):
                return one
        self._sets.append(_PatternSet())
        return self._sets[-1]

    def _forget(self, pattern: TopicsPattern) -> None:
        if isinstance(pattern, Backtracking):
            del self._backtracking[pattern.text]
        elif isinstance(pattern, LinearTime):
            slot = self._linear.pop(pattern.whole)
            slot.home.discard(slot)
            if not slot.home.slots:
                self._sets.remove(slot.home)


class _Slot(Generic[Key]):
    """One of the distinct patterns of an index, with its keys and the set that contains it."""

    __slots__ = ("home", "keys", "size", "whole")

    def __init__(self, whole: str, size: int, home: _PatternSet[Key]) -> None:
        self.whole = whole
        self.size = size
        self.home = home
        self.keys: dict[Key, None] = {}


class _PatternSet(Generic[Key]):
    """Up to 64 patterns that RE2 matches together in one pass over a name.

    A discarded pattern stays in the compiled set, without keys, until the next compilation:
    discarding compiles nothing.
    """

    def __init__(self) -> None:
        self.slots: dict[str, _Slot[Key]] = {}
        self._instructions = 0
        self._engine: _Engine[Key] | None = None

    def has_room(self, size: int) -> bool:
        return len(self.slots) < SET_PATTERNS and self._instructions + size <= SET_INSTRUCTIONS

    def add(self, slot: _Slot[Key]) -> None:
        self.slots[slot.whole] = slot
        self._instructions += slot.size
        self._engine = None

    def discard(self, slot: _Slot[Key]) -> None:
        del self.slots[slot.whole]
        self._instructions -= slot.size

    def compile(self) -> bool:
        """Compile the set if its patterns have changed; return True if it had to be compiled."""
        if self._engine is not None:
            return False
        self._engine = _Engine(list(self.slots.values()))
        return True

    def matching(self, path: bytes) -> list[_Slot[Key]]:
        self.compile()
        assert self._engine is not None
        return self._engine.matching(path)


class _Engine(Generic[Key]):
    def __init__(self, slots: list[_Slot[Key]]) -> None:
        self._slots = slots
        # A single pattern is as fast without a set, whose memory limit may be too small.
        self._set = _set_of([slot.whole for slot in slots]) if len(slots) > 1 else None
        self._one_by_one = self._compiled() if self._set is None else None

    def matching(self, path: bytes) -> list[_Slot[Key]]:
        found = self._set.Match(path) if self._set is not None else None
        always = len(self._slots)
        # A set out of memory finds no match, not even the pattern that always matches.
        if not found or always not in found:
            return self._asked_one_by_one(path)
        return [self._slots[index] for index in found if index != always]

    def _asked_one_by_one(self, path: bytes) -> list[_Slot[Key]]:
        if self._one_by_one is None:
            self._one_by_one = self._compiled()
        pairs = zip(self._slots, self._one_by_one, strict=True)
        return [slot for slot, pattern in pairs if pattern.fullmatch(path)]

    def _compiled(self) -> list[re2._Regexp]:
        return [re2_compiled(slot.whole) for slot in self._slots]


def _set_of(patterns: list[str]) -> re2.Set | None:
    """Compile patterns to one RE2 set; return None if the set would need too much memory.

    The set gets a further, last pattern that always matches.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = SET_BYTES
    together = re2.Set.FullMatchSet(options)
    try:
        for pattern in (*patterns, _ALWAYS):
            together.Add(pattern)
        together.Compile()
    except re2.error:
        return None
    return together
