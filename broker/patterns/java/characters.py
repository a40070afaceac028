"""The parser of characters in java.util.regex patterns: escapes and character classes.

Source: the documentation of java.util.regex.Pattern and observations of Java 17.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import TYPE_CHECKING

from broker.patterns.errors import JavaSyntaxError
from broker.patterns.java.classes import (
    PREDEFINED,
    UNICODE,
    intersection,
    negated,
    property_class,
    single,
    span,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LETTERS = frozenset(string.ascii_letters)
WORD = frozenset(string.ascii_letters + string.digits)
_HEX = frozenset(string.hexdigits)
_COMMENTS = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n\r\x85\u2028\u2029]*)*")
_UNIX_COMMENTS = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n]*)*")
_CONTROLS = {"a": "\x07", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNSUPPORTED = "Illegal/unsupported escape sequence"


class CharacterReader:
    """A parser of the characters, escapes and character classes of a Java pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags: frozenset[str] = frozenset()

    # -- characters ---------------------------------------------------------------------------

    def _peek(self) -> str:
        if "x" in self._flags:
            self._skip_comments()
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _raw(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return char

    def _skip_comments(self) -> None:
        comments = _UNIX_COMMENTS if "d" in self._flags else _COMMENTS
        if found := comments.match(self._text, self._at):
            self._at = found.end()

    def _error(self, what: str, offset: int = 0) -> JavaSyntaxError:
        return JavaSyntaxError(what, self._at + offset)

    def _single(self, char: str) -> str:
        return single(char, any_case="i" in self._flags, unicode_case={"i", "u"} <= self._flags)

    # -- escapes ------------------------------------------------------------------------------

    def _class_of(self, char: str) -> str | None:
        r"""Translate a class escape such as \d or \W; None for other escapes."""
        kind = char.lower()
        if kind not in PREDEFINED:
            return None
        known = UNICODE.get(kind, PREDEFINED[kind]) if "U" in self._flags else PREDEFINED[kind]
        return known if char == kind else negated(known)

    def _escaped_char(self, char: str) -> str:
        """Read an escape, after its backslash and ``char``, and return the character it means.

        An error is raised for escapes that are unknown or not supported.
        """
        if not char:
            self._at -= 1
            raise self._error("Unexpected internal error")
        if char in _CONTROLS:
            return _CONTROLS[char]
        known = {
            "0": self._octal,
            "c": self._control,
            "N": self._character_named,
            "u": self._code_units,
            "x": self._hexadecimal,
        }
        if char in known:
            return known[char]()
        if char in LETTERS:
            raise self._error(_UNSUPPORTED, -1)
        return char

    def _control(self) -> str:
        control = self._raw()
        if not control:
            raise self._error("Illegal control escape sequence", -2)
        return chr(ord(control) ^ 64)

    def _character_named(self) -> str:
        if self._raw() != "{":
            raise self._error("Illegal character name escape sequence", -1)
        end = self._text.find("}", self._at)
        if end < 0:
            self._at = max(self._at + 1, len(self._text))
            raise self._error("Unclosed character name escape sequence", -1)
        name = self._text[self._at : end]
        self._at = end + 1
        try:
            return chr(ord(unicodedata.lookup(name)))
        except (KeyError, TypeError):  # unknown, or a name of several characters
            raise self._error(f"Unknown character name [{name}]", -1) from None

    def _code_units(self) -> str:
        """Read the digits of one Unicode escape, or of two that form a surrogate pair.

        Return the character that they mean.
        """
        unit = self._code_unit()
        after = self._at
        if "\ud800" <= unit <= "\udbff" and self._text.startswith("\\u", after):
            self._at += 2
            pair = unit + self._code_unit()
            if "\udc00" <= pair[1] <= "\udfff":
                return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            self._at = after
        return unit

    def _code_unit(self) -> str:
        return chr(self._hex_digits(4, "Illegal Unicode escape sequence"))

    def _octal(self) -> str:
        digits = ""
        most = 3 if self._text[self._at : self._at + 1] in tuple("0123") else 2
        while len(digits) < most and self._text[self._at : self._at + 1] in tuple("01234567"):
            digits += self._raw()
        if not digits:
            self._at += 1
            raise self._error("Illegal octal escape sequence", -1)
        return chr(int(digits, 8))

    def _hexadecimal(self) -> str:
        if self._text[self._at : self._at + 1] != "{":
            return chr(self._hex_digits(2, "Illegal hexadecimal escape sequence"))
        self._at += 1
        number, digits = 0, 0
        while (char := self._raw()) in _HEX and char:
            number, digits = number * 16 + int(char, 16), digits + 1
            if number > 0x10FFFF:
                raise self._error("Hexadecimal codepoint is too big", -1)
        if char != "}":
            raise self._error("Unclosed hexadecimal escape sequence", -1)
        return chr(number)

    def _hex_digits(self, count: int, what: str) -> int:
        digits = ""
        for _ in range(count):
            char = self._raw()
            if char not in _HEX or not char:
                raise self._error(what, -1)
            digits += char
        return int(digits, 16)

    def _property(self, kind: str) -> str:
        char = self._raw()
        name = char or "\0"
        if char == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                self._at = len(self._text) + 1
                raise self._error("Unclosed character family", -1)
            name = self._text[self._at : end]
            self._at = end + 1
            if not name:
                raise self._error("Empty character family", -1)
        found = property_class(name, any_case="i" in self._flags)
        if found is None:
            key, equals, value = name.partition("=")
            what = f"Unicode property {{name=<{key.lower()}>, value=<{value}>}}"
            raise self._error(
                f"Unknown {what if equals else f'character property name {{{name}}}'}", -1
            )
        return negated(found) if kind == "P" else found

    # -- classes ------------------------------------------------------------------------------

    def _char_class(self, *, consume: bool) -> str:
        members: list[str] = []
        negative = consume and self._peek() == "^"
        if negative:
            self._at += 1
        while True:
            char = self._peek()
            if not char:
                raise self._error("Unclosed character class", -1)
            if char == "]" and members:
                self._at += consume
                return negated(union(members)) if negative else union(members)
            if char == "[":
                self._at += 1
                members.append(self._char_class(consume=True))
            elif self._text[self._at : self._at + 2] == "&&":
                self._at += 2
                members = [self._both(members)]
            else:
                members.append(self._range())

    def _both(self, left: Sequence[str]) -> str:
        right: list[str] = []
        while (char := self._peek()) and char not in "]&":
            if char == "[":
                self._at += 1
                right.append(self._char_class(consume=True))
            else:
                right = [self._char_class(consume=False)]
        if not right and not left:
            raise self._error("Bad class syntax", -1)
        if not right or not left:
            return union(right or left)
        return intersection(union(left), union(right))

    def _range(self) -> str:
        char = self._next()
        if char == "\\":
            escaped = self._raw()
            if escaped in ("p", "P"):
                return self._property(escaped)
            known = self._class_of(escaped)
            if known is not None:
                return known
            if escaped and escaped in "123456789":
                raise self._error(_UNSUPPORTED, -1)
            char = self._escaped_char(escaped)
        return self._from(char)

    def _from(self, first: str) -> str:
        """Translate a character in a character class, or a range that begins with it."""
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("[", "]"):
            return self._single(first)
        self._at += 1
        last = self._next()
        if last == "\\":
            last = self._range_end(self._raw())
        if not last:
            raise self._error("Unclosed character class", -2)
        if last < first:
            raise self._error("Illegal character range", -1)
        any_case, unicode_case = "i" in self._flags, "u" in self._flags
        return span(first, last, any_case=any_case, unicode_case=unicode_case)

    def _range_end(self, escaped: str) -> str:
        if escaped == "v":
            return "\x0b"
        if not escaped or escaped.lower() in PREDEFINED:
            raise self._error("Illegal character range", -1)
        return self._escaped_char(escaped)
