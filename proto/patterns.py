"""Topic patterns: full match on ``tenant/namespace/local`` without the partition suffix.

RE2 decides, over Arrow columns; what RE2 cannot compile (look-around, back-references) goes to
a backtracking engine under a time limit, where upstream would ask java.util.regex.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import re2
import regex

from proto.names import NON_PERSISTENT, PERSISTENT, without_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

MATCH_ALL = ".*"
FALLBACK_SECONDS_PER_NAME = 0.05
"""Most time the backtracking engine may spend on one name."""
_SCHEME = "://"
# Numbers up to a Java int's largest, as names.partition_index: 2147483647.
_INDEX = "|".join(
    (
        r"0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6}",
        r"2147[0-3][0-9]{5}|21474[0-7][0-9]{4}|214748[0-2][0-9]{3}|2147483[0-5][0-9]{2}",
        r"21474836[0-3][0-9]|214748364[0-7]",
    )
)
_PARTITION_SUFFIX = rf"-partition-(?:{_INDEX})\z"
_DOMAIN_PREFIX = r"\A(?:non-)?persistent://"


class InvalidPatternError(ValueError):
    """A pattern that cannot be compiled, or whose evaluation takes too long."""


class RegexImplementation(Enum):
    """The values of ``topicsPatternRegexImplementation``."""

    RE2J = "RE2J"
    JDK = "JDK"
    RE2J_WITH_JDK_FALLBACK = "RE2J_WITH_JDK_FALLBACK"


class TopicsPattern(Protocol):
    """A compiled pattern.

    Attributes:
        linear: Whether its time grows with the names' length only. A pattern that is not may
            take FALLBACK_SECONDS_PER_NAME for each name, and belongs into a thread.
    """

    linear: bool

    def keep(self, names: Sequence[bytes]) -> Sequence[bytes]:
        """Return the full topic names (UTF-8) that match, in their order.

        Raises:
            InvalidPatternError: The evaluation took too long.
        """


def remove_domain_scheme(pattern: str) -> str:
    """Return a pattern without its ``persistent://``; a prefix such as ``^`` stays.

    Raises:
        InvalidPatternError: Something else stands before ``://``.

    Source: upstream TopicList.removeTopicDomainScheme.
    """
    if _SCHEME not in pattern:
        return pattern
    domain, rest = pattern.split(_SCHEME)[:2]
    for known in (NON_PERSISTENT, PERSISTENT):
        if domain.endswith(known):
            return domain.removesuffix(known) + rest
    raise InvalidPatternError(f"Does not support topic domain: {domain}")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, implementation: RegexImplementation) -> TopicsPattern:
    """Compile a client's pattern, scheme included.

    Raises:
        InvalidPatternError: No engine that the implementation allows can compile it.

    Source: upstream TopicsPatternFactory.
    """
    text = remove_domain_scheme(pattern)
    if text == MATCH_ALL:
        return _MatchAll()
    if implementation is RegexImplementation.JDK:
        return _Backtracking(text)
    whole = _whole_match(text)
    if whole is not None:
        return _LinearTime(whole)
    if implementation is RegexImplementation.RE2J_WITH_JDK_FALLBACK:
        return _Backtracking(text)
    raise InvalidPatternError(f"Invalid topics pattern: {text!r} is not RE2 syntax")


def _whole_match(text: str) -> str | None:
    """Return the RE2 pattern that matches ``text`` from end to end; None if RE2 refuses it."""
    # Compiled alone first, so that it cannot leave the group it is put into.
    if not _re2_compiles(text):
        return None
    # An open \Q quotes all that follows, the group's bracket too, until it is closed.
    grouped = (rf"\A(?:{text})\z", rf"\A(?:{text}\E)\z")
    return next(filter(_re2_compiles, grouped), None)


def _re2_compiles(text: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error:
        return False
    return True


class _MatchAll:
    linear = True

    def keep(self, names: Sequence[bytes]) -> Sequence[bytes]:
        return names


class _LinearTime:
    """RE2 on Arrow columns: no Python call per name."""

    linear = True

    def __init__(self, whole: str) -> None:
        self._whole = whole

    def keep(self, names: Sequence[bytes]) -> Sequence[bytes]:
        column = pa.array(names, pa.string())
        base = pc.replace_substring_regex(column, _PARTITION_SUFFIX, "")
        path = pc.replace_substring_regex(base, _DOMAIN_PREFIX, "")
        kept = column.filter(pc.match_substring_regex(path, self._whole))
        matching: list[bytes] = kept.cast(pa.binary()).to_pylist()
        return matching


class _Backtracking:
    """A backtracking engine, name by name, each under a time limit."""

    linear = False

    def __init__(self, text: str) -> None:
        try:
            self._pattern = regex.compile(text)
        except regex.error as error:
            raise InvalidPatternError(f"Invalid topics pattern: {text!r}: {error}") from None

    def keep(self, names: Sequence[bytes]) -> Sequence[bytes]:
        return [name for name in names if self._matches(name.decode())]

    def _matches(self, name: str) -> bool:
        path = without_partition(name).split(_SCHEME, 1)[-1]
        try:
            # "concurrent" lets go of the interpreter's lock: a thread that matches stops nobody.
            found = self._pattern.fullmatch(
                path, timeout=FALLBACK_SECONDS_PER_NAME, concurrent=True
            )
        except TimeoutError:
            raise InvalidPatternError(
                f"Topics pattern {self._pattern.pattern!r} takes more than "
                f"{FALLBACK_SECONDS_PER_NAME} s on one name; write it without look-around"
            ) from None
        return found is not None
