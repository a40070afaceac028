"""Compiled topic patterns, which match whole topic names without their partition suffix.

A name is matched as ``tenant/namespace/local``. RE2 matches names, or Arrow columns; patterns that
RE2 cannot compile (look-around, back-references) go to a backtracking engine under a time limit,
where upstream uses java.util.regex.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import re2
import regex

from broker.patterns.errors import (
    ILLEGAL_ARGUMENT,
    JDK_ERROR,
    RE2J_ERROR,
    InvalidPatternError,
    JavaSyntaxError,
    invalid_syntax,
    jdk_description,
    re2j_description,
)
from broker.patterns.java.pattern import translated
from broker.patterns.literal_search import key_range, taken_apart
from proto.names import NON_PERSISTENT, PERSISTENT

if TYPE_CHECKING:
    from broker.patterns.plain_paths import Paths
    from broker.topic_lists.block import Mask

MATCH_ALL = ".*"
RE2_MEMORY_BYTES = 524_288
"""RE2's memory for a compiled pattern. With the default 8 MiB a pattern of six characters,
``\\pL{99}``, blocks the event loop for 80 ms; the largest patterns in use, such as ``.{1000}``, for
2 ms.
"""
MAX_COMPILED = 256
"""Size of the cache of compiled patterns; the least recently used is evicted."""
_SCHEME = "://"
_NOTHING_BEHIND = (
    "Index 1 out of bounds for length 1",
    "java.lang.ArrayIndexOutOfBoundsException",
)
"""The error of upstream, which splits a pattern at ``://`` and takes the second part."""
_REFUSED_BY_RE2J = (
    (re.compile(r"\(\?P?<(\w+)>(?=.*\(\?P?<\1>)", re.DOTALL), "duplicate capture group name"),
    (re.compile(r"\{[0-9]{9,}(?:,[0-9]*)?\}"), "invalid repetition size"),
    (re.compile(r"(?<!\\)\{[*+?]"), "bad repetition operator"),
)
"""Patterns that RE2 compiles but RE2/J refuses, with RE2/J's error texts."""


class RegexImplementation(Enum):
    """The regex engines that ``topicsPatternRegexImplementation`` can select."""

    RE2J = "RE2J"
    JDK = "JDK"
    RE2J_WITH_JDK_FALLBACK = "RE2J_WITH_JDK_FALLBACK"


def pattern_length(pattern: str) -> int:
    """Return the length of a pattern in UTF-16 units, as Java counts it."""
    return len(pattern.encode("utf-16-le", "surrogatepass")) // 2


def remove_domain_scheme(pattern: str) -> str:
    """Return a pattern without ``persistent://`` or ``non-persistent://``.

    A prefix such as ``^`` stays.

    Raises:
        InvalidPatternError: An unknown domain precedes ``://``, or the pattern ends there.

    Source: upstream TopicList.removeTopicDomainScheme.
    """
    if _SCHEME not in pattern:
        return pattern
    domain, rest, *others = pattern.split(_SCHEME)
    if not rest and not any(others):
        raise InvalidPatternError(*_NOTHING_BEHIND, prefix=f"nothing follows {_SCHEME}: ")
    for known in (NON_PERSISTENT, PERSISTENT):
        if domain.endswith(known):
            return domain.removesuffix(known) + rest
    raise InvalidPatternError(f"Does not support topic domain: {domain}", ILLEGAL_ARGUMENT)


_compiled: OrderedDict[tuple[str, RegexImplementation], TopicsPattern] = OrderedDict()


def compiled_before(pattern: str, implementation: RegexImplementation) -> TopicsPattern | None:
    """Return a pattern's compiled form from the cache; None if it is not cached."""
    found = _compiled.get((pattern, implementation))
    if found is not None:
        _compiled.move_to_end((pattern, implementation))
    return found


def compile_pattern(pattern: str, implementation: RegexImplementation) -> TopicsPattern:
    """Return a client's pattern in compiled form; the last MAX_COMPILED patterns are cached.

    The pattern may begin with a domain such as ``persistent://``.

    Raises:
        InvalidPatternError: No engine of the implementation can compile the pattern.

    Source: upstream TopicsPatternFactory.
    """
    found = compiled_before(pattern, implementation)
    if found is None:
        found = _compiled[pattern, implementation] = _newly_compiled(pattern, implementation)
        if len(_compiled) > MAX_COMPILED:
            _compiled.popitem(last=False)
    return found


def _newly_compiled(pattern: str, implementation: RegexImplementation) -> TopicsPattern:
    text = remove_domain_scheme(pattern)
    if text == MATCH_ALL:
        return MatchAll()
    if implementation is RegexImplementation.JDK:
        return Backtracking(text)
    try:
        return LinearTime(text)
    except re2.error as error:
        if implementation is RegexImplementation.RE2J_WITH_JDK_FALLBACK:
            return Backtracking(text)
        raise invalid_syntax(re2j_description(error), RE2J_ERROR) from None


def _whole_match(text: str) -> re2._Regexp:
    """Compile a pattern with RE2, so that it matches names from end to end.

    Raises:
        re2.error: RE2 refuses the pattern.
    """
    for refused, what in _REFUSED_BY_RE2J:
        if found := refused.search(text):
            raise re2.error(f"{what}: {found.group()}")
    # Compiled alone first, so that the text cannot escape from its group.
    re2_compiled(text)
    try:
        return re2_compiled(rf"\A(?:{text})\z")
    except re2.error:
        # An open \Q quotes all following text, even the group's bracket, until closed.
        return re2_compiled(rf"\A(?:{text}\E)\z")


_SMALL, _FAST = re2.Options(), re2.Options()
_SMALL.log_errors = _FAST.log_errors = False
_SMALL.max_mem = RE2_MEMORY_BYTES
_FAST.never_capture = True  # with RE2's default memory: a sixtieth of the time of large patterns


def re2_compiled(text: str | bytes, options: re2.Options = _SMALL) -> re2._Regexp:
    """Compile a pattern with RE2, without leaving it in re2's own cache.

    Raises:
        re2.error: RE2 refuses the pattern.
    """
    try:
        return re2.compile(text, options)
    finally:
        re2.purge()


class MatchAll:
    """The pattern ``.*``, which matches every name without a regex engine."""

    text = MATCH_ALL


class LinearTime:
    """A pattern that RE2 matches in linear time; one call can match many names.

    Attributes:
        text: The pattern without its scheme.
        whole: The pattern for a match from end to end.
        low: Lower bound of matching paths, by ``java_order``.
        high: Upper bound of matching paths with their partitions.
        program_size: Compiled instructions: the time for a name may grow with their number.

    Raises:
        re2.error: RE2 refuses the pattern.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        compiled = _whole_match(text)
        self.whole: str = compiled.pattern
        self.low, self.high = key_range(compiled)
        self.program_size: int = compiled.programsize
        self._search = taken_apart(text)

    def matching(self, paths: Paths) -> Mask:
        """Match each path; return a mask with a byte for each path, 1 for a match.

        See ``broker.topic_lists.paths`` about paths. An Arrow column is matched in one call.
        """
        if isinstance(paths, list):
            match = _compiled_for_names(self.whole).match
            return bytes([match(path) is not None for path in paths])
        from broker.patterns.columns import matched  # Arrow may not be there

        return matched(paths, self.whole, self._search)


@lru_cache(maxsize=2)  # each takes up to 8 MB
def _compiled_for_names(whole: str) -> re2._Regexp:
    return re2_compiled(whole.encode(), _FAST)


class Backtracking:
    """A pattern that only a backtracking engine can match, in a worker process with a time limit.

    Attributes:
        text: The pattern without its scheme.
        translation: The engine's pattern, equivalent to java.util.regex.

    Raises:
        InvalidPatternError: The engine cannot compile the pattern.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.translation = translated(text)
            regex.compile(self.translation, cache_pattern=False)
        except JavaSyntaxError as error:
            raise invalid_syntax(jdk_description(text, error), JDK_ERROR) from None
        except (regex.error, RecursionError) as error:
            raise InvalidPatternError(f"Invalid topics pattern: {error}", JDK_ERROR) from None


TopicsPattern: TypeAlias = MatchAll | LinearTime | Backtracking
"""A client's compiled topic pattern."""
