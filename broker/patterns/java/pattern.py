"""The translation of java.util.regex patterns to the syntax of Python's ``regex`` module.

A real broker passes patterns refused by RE2/J to Java's own engine. The translator parses such a
pattern as Java does, reports mistakes in Java's words, and writes the pattern for an engine with
the same backtracking. Flags are resolved while reading, so the translation has none.

Source: the documentation of java.util.regex.Pattern and observations of Java 17. Differs: canonical
equivalence and grapheme boundaries are ignored.
"""

from __future__ import annotations

import string

from broker.patterns.errors import InvalidPatternError
from broker.patterns.java.characters import LETTERS, WORD, CharacterReader
from broker.patterns.java.classes import ANY, NOTHING
from broker.patterns.java.nodes import (
    MOST_REPEATS,
    Node,
    as_int,
    either,
    grouped,
    joined,
    nothing_consumed,
    one,
    repeated,
)
from proto.excerpts import quoted

_LINE_END = r"[\n\r\x85\u2028\u2029]"
_FLAGS = frozenset("imsdxuUc")
_ANCHORS = {
    "A": r"\A",
    "B": r"\B",
    "b": r"\b",
    "G": r"\A",
    "Z": rf"(?=(?:\r\n|{_LINE_END})?\Z)",
    "z": r"\Z",
}
MOST_WEIGHT = 5_000
"""Largest weight of a pattern: the slowest patterns of 50 characters with that weight compile in 6
ms.

Without a limit, a pattern of twenty characters could weigh a billion.
"""
_EMPTY = Node("", 0)
_FLAGS_ONLY = Node("(?:)", 0)
_BESIDES = {
    **{char: nothing_consumed(text) for char, text in _ANCHORS.items()},
    "R": Node(r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])", 2, weight=3),
    "X": Node(r"\X", 0),
}


def translated(pattern: str) -> str:
    """Translate a java.util.regex pattern to the syntax of the ``regex`` module.

    Raises:
        JavaSyntaxError: Java would refuse the pattern.
        InvalidPatternError: The pattern weighs more than MOST_WEIGHT.
    """
    node = _Reader(pattern).read()
    if node.weight > MOST_WEIGHT:
        raise InvalidPatternError(
            f"the pattern {quoted(pattern)} repeats too much: its repetitions written out are "
            f"more than {MOST_WEIGHT:,} parts"
        )
    return node.text


def _without_quotes(pattern: str) -> str:
    r"""Return a pattern whose \Q...\E quotations are replaced by escaped characters."""
    if "\\Q" not in pattern:
        return pattern
    out: list[str] = []
    at, in_quotes = 0, False
    while at < len(pattern):
        two = pattern[at : at + 2]
        if in_quotes and two == "\\E":
            in_quotes, at = False, at + 2
        elif in_quotes:
            char = pattern[at]
            after_quote = char in string.digits and pattern[at - 2 : at] == "\\Q"
            plain = char in WORD and not after_quote
            out.append(char if plain else f"\\x3{char}" if after_quote else f"\\{char}")
            at += 1
        elif two == "\\Q":
            in_quotes, at = True, at + 2
        else:
            size = 2 if two.startswith("\\") else 1
            out.append(pattern[at : at + size])
            at += size
    return "".join(out)


class _Reader(CharacterReader):
    def __init__(self, pattern: str) -> None:
        super().__init__(_without_quotes(pattern))
        self._groups = 0
        self._named: dict[str, int] = {}

    def read(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._error("Unmatched closing ')'", -1)
        return node

    # -- structure ----------------------------------------------------------------------------

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else either(branches)

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while (char := self._peek()) and char not in "|)":
            node = self._atom(char)
            if node is not _FLAGS_ONLY:
                nodes.append(self._repeated(node))
        return joined(nodes)

    def _atom(self, char: str) -> Node:
        if char == "{":
            return _EMPTY
        self._at += 1
        if char in "*+?":
            raise self._error(f"Dangling meta character '{char}'", -1)
        known = {"(": self._group, "\\": self._escape, "^": self._begin, "$": self._end}
        if char in known:
            return known[char]()
        if char == "[":
            return one(self._char_class(consume=True))
        return one(self._dot() if char == "." else self._single(char))

    def _begin(self) -> Node:
        behind = rf"(?<=\A|(?<!\r(?=\n)){_LINE_END})(?!\Z)"
        return nothing_consumed(behind if "m" in self._flags else r"\A")

    def _end(self) -> Node:
        before = rf"(?=\Z|{_LINE_END})"
        return nothing_consumed(before if "m" in self._flags else _ANCHORS["Z"])

    def _dot(self) -> str:
        if "s" in self._flags:
            return ANY
        return r"[^\n]" if "d" in self._flags else r"[^\n\r\x85\u2028\u2029]"

    # -- repetition ---------------------------------------------------------------------------

    def _repeated(self, node: Node) -> Node:
        char = self._peek()
        if char == "{":
            least, most = self._counts()
        elif char and char in "*+?":
            self._at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        else:
            return node
        kind = self._peek()
        if kind and kind in "?+":
            self._at += 1
        else:
            kind = ""
        return repeated(node, least, most, kind)

    def _counts(self) -> tuple[int, int | None]:
        self._at += 1
        if self._text[self._at : self._at + 1] not in string.digits or self._at >= len(self._text):
            self._at += 1
            raise self._error("Illegal repetition", -1)
        least = self._number()
        most: int | None = least
        if self._text[self._at : self._at + 1] == ",":
            self._at += 1
            bounded = self._text[self._at : self._at + 1] in tuple(string.digits)
            most = self._number() if bounded else None
        if self._text[self._at : self._at + 1] != "}":
            raise self._error("Unclosed counted closure")
        if most is not None and most < least:
            raise self._error("Illegal repetition range")
        self._at += 1
        return least, most

    def _number(self) -> int:
        number = 0
        while self._text[self._at : self._at + 1] in tuple(string.digits):
            number = number * 10 + int(self._raw())
            if number > MOST_REPEATS:
                raise self._error("Illegal repetition range", -1)
        return number

    # -- groups -------------------------------------------------------------------------------

    def _group(self) -> Node:
        flags = self._flags
        if self._peek() != "?":
            self._groups += 1
            return self._closed(self._choice(), "(", flags)
        self._at += 1
        char = self._raw()
        if char == ":":
            return self._closed(self._choice(), "(?:", flags)
        if char in ("=", "!", ">"):
            node = self._closed(self._choice(), f"(?{char}", flags)
            return node if char == ">" else Node(node.text, 0, weight=node.weight)
        if char == "<":
            return self._angle_group(flags)
        if char in ("$", "@"):
            raise self._error("Unknown group type", -1)
        self._at -= 1
        return self._flag_group(flags)

    def _angle_group(self, flags: frozenset[str]) -> Node:
        char = self._raw()
        if char in ("=", "!"):
            node = self._closed(self._choice(), f"(?<{char}", flags)
            if node.longest is None:
                raise self._error("Look-behind group does not have an obvious maximum length", -2)
            if -MOST_REPEATS // 2 < as_int(node.longest) < 0:
                return Node(NOTHING if char == "=" else "", 0)
            return Node(node.text, 0, weight=node.weight)
        name = self._group_name(char)
        if name in self._named:
            raise self._error(f"Named capturing group <{name}> is already defined", -1)
        self._groups += 1
        self._named[name] = self._groups
        return self._closed(self._choice(), "(", flags)

    def _group_name(self, char: str) -> str:
        name = ""
        if char not in LETTERS:
            raise self._error("capturing group name does not start with a Latin letter", -1)
        while char in WORD and char:
            name += char
            char = self._raw()
        if char != ">":
            raise self._error("named capturing group is missing trailing '>'", -1)
        return name

    def _flag_group(self, outer: frozenset[str]) -> Node:
        flags, adds = self._flags, True
        while (char := self._peek()) in _FLAGS or (char == "-" and adds):
            self._at += 1
            if char == "-":
                adds = False
            else:
                named = {"U", "u"} if char == "U" else {char}
                flags = flags | named if adds else flags - named
            self._flags = flags
        char = self._raw()
        if char == ")":
            return _FLAGS_ONLY
        if char != ":":
            raise self._error("Unknown inline modifier", -1)
        return self._closed(self._choice(), "(?:", outer)

    def _closed(self, node: Node, opening: str, flags: frozenset[str]) -> Node:
        if self._peek() != ")":
            raise self._error("Unclosed group")
        self._at += 1
        self._flags = flags
        return grouped(opening, node)

    # -- escapes ------------------------------------------------------------------------------

    def _escape(self) -> Node:
        char = self._raw()
        if char in _BESIDES:
            return _BESIDES[char]
        if char in ("p", "P"):
            return one(self._property(char))
        if char == "k":
            return self._named_reference()
        if char and char in "123456789":
            return self._reference(char)
        known = self._class_of(char)
        return one(known if known is not None else self._single(self._escaped_char(char)))

    def _named_reference(self) -> Node:
        if self._raw() != "<":
            raise self._error("\\k is not followed by '<' for named capturing group", -1)
        name = self._group_name(self._raw())
        if name not in self._named:
            raise self._error(f"named capturing group <{name}> does not exist", -1)
        return Node(self._back(self._named[name]), None)

    def _reference(self, char: str) -> Node:
        number = int(char)
        while (digit := self._text[self._at : self._at + 1]) and digit in string.digits:
            if number * 10 + int(digit) > self._groups:
                break
            number, self._at = number * 10 + int(digit), self._at + 1
        return Node(self._back(number) if number <= self._groups else NOTHING, None)

    def _back(self, number: int) -> str:
        return f"(?i:\\g<{number}>)" if "i" in self._flags else f"\\g<{number}>"
