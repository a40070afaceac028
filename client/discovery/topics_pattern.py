"""Patterns for topics, each made of a namespace and a regular expression."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self

from client.exceptions import InvalidConfiguration
from limiter.extras import extra
from proto.errors import RemoteProtocolError
from proto.excerpts import quoted
from proto.names import (
    PARTITION_SEPARATOR,
    PERSISTENT,
    InvalidNameError,
    NamespaceName,
    without_partition,
)
from proto.parsing.varint import decode_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proto.topics_response import TopicsAnswer

_SCHEME = "://"
_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
_KNOWN_FLAGS = re.UNICODE | re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL
_PLAIN = re.compile(r"[A-Za-z0-9_/:-]*")
_RE2_BYTES = 1 << 19
_COMPILED = 64
"""Maximum number of compiled expressions in the process's cache, about 15 kB each."""
_NAME_SECONDS = 0.01
"""Longest time in seconds for matching one name without RE2."""


class _Expression(Protocol):
    def fullmatch(self, text: str, /) -> object | None: ...


class TopicsPattern:
    """A regular expression that must match whole topic names of a namespace.

    Names are ``tenant/namespace/local``, without domain and partition; a mode selects the domains.

    Args:
        text: A regular expression: ``persistent://tenant/namespace/local``, the same without the
            scheme, or only the local name of topics in ``public/default``. Tenant and namespace are
            plain names.
        flags: Inline flags for the local name: ``i``, ``m``, ``s``.

    Attributes:
        text: The pattern in the long form that is sent to a broker.
        namespace: ``tenant/namespace``.

    Raises:
        InvalidConfiguration: The namespace is missing, or the regular expression is invalid.
    """

    def __init__(self, text: str, flags: str = "") -> None:
        domain, scheme, path = text.removeprefix("^").rpartition(_SCHEME)
        if not scheme and path.count("/") < 2:
            path = f"public/default/{path}"
        tenant, _, rest = path.partition("/")
        namespace, _, local = rest.partition("/")
        try:
            self.namespace = str(NamespaceName.parse(f"{tenant}/{namespace}"))
        except InvalidNameError:
            raise InvalidConfiguration(
                f"the pattern {quoted(text)} names no namespace: write tenant and namespace as they"
                " are, and the expression for the local name behind them"
            ) from None
        if not local:
            raise InvalidConfiguration(
                f"the pattern {quoted(text)} has nothing for the topics' local names: write .* for"
                " all of them"
            )
        if flags:
            local = f"(?{flags}:{local})"
        self.text = f"{domain or PERSISTENT}{_SCHEME}{self.namespace}/{local}"
        self._beginning = f"{self.namespace}/{_beginning(local)}"
        self._expression = f"{re.escape(self.namespace)}/(?:{local})"
        _compiled(self._expression)

    @classmethod
    def of(cls, given: object) -> Self:
        """Create a pattern from a string, or from a compiled expression with its flags.

        Raises:
            InvalidConfiguration: The argument is neither, or has a flag that brokers do not
                support.
        """
        if isinstance(given, str):
            return cls(given)
        if not isinstance(given, re.Pattern) or not isinstance(given.pattern, str):
            raise InvalidConfiguration(f"a pattern of topics is a str, not {type(given).__name__}")
        unknown = re.RegexFlag(given.flags) & ~_KNOWN_FLAGS
        if unknown:
            raise InvalidConfiguration(
                f"a pattern of topics cannot have {unknown!r}: brokers know re.I, re.M and re.S"
            )
        letters = (letter for flag, letter in _FLAGS.items() if given.flags & flag)
        return cls(given.pattern, "".join(letters))

    def matches(self, name: str) -> bool:
        """Return True if a topic's full name matches the pattern.

        Raises:
            InvalidConfiguration: Matching the name against the expression takes too long.
        """
        path = name.partition(_SCHEME)[2]
        if not path.startswith(self._beginning):  # ten times faster than matching
            return False
        if PARTITION_SEPARATOR in path:  # rare: the test is cheaper than parsing
            path = without_partition(path)
        try:
            return _compiled(self._expression).fullmatch(path) is not None
        except TimeoutError:
            raise InvalidConfiguration(
                f"the pattern {quoted(self.text)} takes more than {_NAME_SECONDS} s for one name:"
                " write it without look-around"
            ) from None


def _beginning(expression: str) -> str:
    """Return a literal prefix that all names matching an expression share; possibly ""."""
    found = _PLAIN.match(expression)
    plain = found.group() if found is not None and "|" not in expression else ""
    repeated = expression[len(plain) : len(plain) + 1] in ("*", "?", "+", "{")
    return plain[:-1] if repeated else plain


class _Backtracking:
    """An expression that RE2 does not support, matched by backtracking with a time limit."""

    def __init__(self, pattern: Any) -> None:  # noqa: ANN401 - regex has no types
        self._pattern = pattern

    def fullmatch(self, text: str, /) -> object | None:
        found: object | None = self._pattern.fullmatch(text, timeout=_NAME_SECONDS)
        return found


@lru_cache(_COMPILED)
def _compiled(text: str) -> _Expression:
    """Compile a regular expression.

    The result is cached here and not stored in each pattern, as the client rarely matches names
    itself.
    """
    with extra("patterns"):
        import re2
        import regex
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _RE2_BYTES
    try:
        expression: _Expression = re2.compile(text, options)
    except re2.error:
        try:
            expression = _Backtracking(regex.compile(text))
        except regex.error as error:
            raise InvalidConfiguration(
                f"the pattern {quoted(text)} is no regular expression: {error}"
            ) from None
    return expression


def topics_of(names: Iterable[str]) -> set[str]:
    """Return the topics to which names belong; all partitions of a topic count as one topic."""
    return {without_partition(name) for name in names}


NAMES_IN_A_STEP = 2_000
"""Number of names decoded in one event-loop iteration, which takes 3 ms."""
_NAME, _FILTERED, _HASH, _CHANGED = 2, 3, 4, 5
_VARINT, _BYTES = 0, 2


class MatchingNames:
    """The topic names in a broker's response that match a pattern, and its other fields.

    Args:
        answer: The response as received, not decoded.
        pattern: Pattern to apply to the names if the broker has not applied it.

    Attributes:
        names: The matching names.
        topics_hash: The broker's hash of the whole list, or None.
        filtered: Whether the broker applied the pattern.
        changed: False if the list is unchanged since the hash in the request; no names are then
            sent.
    """

    def __init__(self, answer: TopicsAnswer, pattern: TopicsPattern) -> None:
        self._answer = answer
        self._pattern = pattern
        self.names: set[str] = set()
        self.topics_hash: str | None = None
        self.filtered = False
        self.changed = True

    def read(self) -> Iterator[None]:
        """Decode the response; each iteration is a step of a few milliseconds.

        Raises:
            RemoteProtocolError: The answer is not protobuf, or a name is not UTF-8.
            InvalidConfiguration: Matching a name against the pattern takes too long.
        """
        tail = self._answer.tail()
        self.filtered = tail is not None and tail.filtered
        data = b"".join(self._answer.rest)
        self._answer.rest.clear()  # Early: others hold equally large lists.
        offset = count = 0
        while offset < len(data):
            tag, offset = decode_varint(data, offset)
            if tag & 7 == _BYTES:
                size, offset = decode_varint(data, offset)
                if offset + size > len(data):
                    raise RemoteProtocolError("a topic list is cut off")
                self._text(tag >> 3, data[offset : offset + size])
                offset += size
            elif tag & 7 == _VARINT:
                value, offset = decode_varint(data, offset)
                self._flag(tag >> 3, value)
            else:
                raise RemoteProtocolError(f"a topic list has a field with the tag {tag}")
            count += 1
            if count % NAMES_IN_A_STEP == 0:
                yield

    def _text(self, number: int, value: bytes) -> None:
        try:
            if number == _NAME:
                name = value.decode()
                if self.filtered or self._pattern.matches(name):
                    self.names.add(name)
            elif number == _HASH:
                self.topics_hash = value.decode() or None
        except UnicodeDecodeError:
            raise RemoteProtocolError("a name in a topic list is not UTF-8") from None

    def _flag(self, number: int, value: int) -> None:
        if number == _CHANGED:
            self.changed = bool(value)
        elif number == _FILTERED:
            self.filtered = bool(value)
