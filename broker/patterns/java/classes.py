"""Character classes of java.util.regex, translated to the syntax of the ``regex`` module.

Each translation consumes one character: a union is a choice, an intersection a lookahead, and a
negation a lookahead before any character.

Source: the documentation of java.util.regex.Pattern, Java 17.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

import regex

from proto.names import JAVA_WHITESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY = r"(?s:.)"
NOTHING = r"(?!)"
PREDEFINED = {
    "d": "[0-9]",
    "w": "[a-zA-Z_0-9]",
    "s": r"[ \t\n\x0b\f\r]",
    "h": r"[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "v": r"[\n\x0b\f\r\x85\u2028\u2029]",
}
UNICODE = {
    "d": r"\p{Nd}",
    "w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]",
    "s": r"\p{White_Space}",
}
_ASCII = {
    "ASCII": r"[\x00-\x7f]",
    "Alnum": "[a-zA-Z0-9]",
    "Alpha": "[a-zA-Z]",
    "Blank": r"[ \t]",
    "Cntrl": r"[\x00-\x1f\x7f]",
    "Digit": "[0-9]",
    "Graph": r"[\x21-\x7e]",
    "Lower": "[a-z]",
    "Print": r"[\x20-\x7e]",
    "Punct": r"[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]",
    "Space": r"[ \t\n\x0b\f\r]",
    "Upper": "[A-Z]",
    "XDigit": "[0-9a-fA-F]",
    "all": ANY,
    "L1": r"[\x00-\xff]",
    "LC": r"[\p{Lu}\p{Ll}\p{Lt}]",
    "LD": r"[\p{L}\p{Nd}]",
    "javaLowerCase": r"\p{Lowercase}",
    "javaUpperCase": r"\p{Uppercase}",
    "javaAlphabetic": r"\p{Alphabetic}",
    "javaWhitespace": f"[{JAVA_WHITESPACE}]",
    "javaDigit": r"\p{Nd}",
    "javaLetter": r"\p{L}",
    "javaLetterOrDigit": r"[\p{L}\p{Nd}]",
}
_MINOR = {
    "L": "ultmo",
    "M": "nec",
    "N": "dlo",
    "Z": "slp",
    "C": "nfocs",
    "P": "dsecoif",
    "S": "mcko",
}
_CATEGORIES = {f"{major}{minor}" for major, all_ in _MINOR.items() for minor in ("", *all_)}
_BINARY = frozenset(
    {
        "ALPHABETIC",
        "LETTER",
        "IDEOGRAPHIC",
        "LOWERCASE",
        "UPPERCASE",
        "TITLECASE",
        "WHITE_SPACE",
        "CONTROL",
        "PUNCTUATION",
        "HEX_DIGIT",
        "NONCHARACTER_CODE_POINT",
        "DIGIT",
        "ALNUM",
        "BLANK",
        "GRAPH",
        "PRINT",
        "WORD",
        "JOIN_CONTROL",
    }
)
_CATEGORY_OF = {
    "LETTER": "L",
    "TITLECASE": "Lt",
    "CONTROL": "Cc",
    "PUNCTUATION": "P",
    "DIGIT": "Nd",
}


def negated(one: str) -> str:
    """Return the class of all characters that are not in the given class."""
    return f"(?:(?!{one}){ANY})"


def union(members: Sequence[str]) -> str:
    """Return the class of all characters that are in any of the given classes."""
    return members[0] if len(members) == 1 else f"(?:{'|'.join(members)})"


def intersection(first: str, second: str) -> str:
    """Return the class of all characters that are in both classes."""
    return f"(?:(?={first}){second})"


def single(char: str, *, any_case: bool, unicode_case: bool) -> str:
    """Return the class that contains one character or, ignoring case, both its cases."""
    literal = regex.escape(char, special_only=False) if char.isascii() else char
    if "\ud800" <= char <= "\udfff":
        literal = f"\\u{ord(char):04x}"
    if not any_case or not (unicode_case or char in string.ascii_letters):
        return f"\\x{ord(char):02x}" if ord(char) < 32 or char == " " else literal
    if unicode_case:
        return f"(?i:{literal})"
    return f"[{char.lower()}{char.upper()}]"


def span(first: str, last: str, *, any_case: bool, unicode_case: bool) -> str:
    """Return the class of all characters from ``first`` to ``last``, ignoring case if requested."""
    group = f"\\U{ord(first):08x}-\\U{ord(last):08x}"
    if any_case and unicode_case:
        return f"(?i:[{group}])"
    others = (char.swapcase() for char in string.ascii_letters if first <= char <= last)
    return f"[{group}{''.join(others) if any_case else ''}]"


_NAME = re.compile(r"(?:\w+=)?[a-zA-Z0-9](?:[\w\- ]*[a-zA-Z0-9])?", re.ASCII)
_EITHER_CASE = {
    **dict.fromkeys(("Lu", "Ll", "Lt", "IsLu", "IsLl", "IsLt"), r"[\p{Lu}\p{Ll}\p{Lt}]"),
    **dict.fromkeys(("Lower", "Upper"), "[a-zA-Z]"),
    **dict.fromkeys(
        ("islowercase", "isuppercase", "istitlecase", "javaLowerCase", "javaUpperCase"),
        r"[\p{Lowercase}\p{Uppercase}\p{Lt}]",
    ),
}
"""Properties with more characters under case-insensitive matching."""


def property_class(name: str, *, any_case: bool) -> str | None:
    """Translate a character property such as ``Lu`` or ``IsGreek``; None if Java has none such."""
    if any_case and (either := _EITHER_CASE.get(name) or _EITHER_CASE.get(name.lower())):
        return either
    key, equals, value = name.partition("=")
    if equals:
        known = {"sc", "script", "blk", "block", "gc", "general_category"}
        return _known(f"{key}={value}") if key.lower() in known else None
    if name.startswith("In"):
        return _known(f"Block={name[2:]}")
    if name.startswith("Is"):
        return _unicode_property(name[2:])
    return _ASCII.get(name) or (_known(name) if name in _CATEGORIES else None)


def _unicode_property(name: str) -> str | None:
    if name.upper() == "ASSIGNED":
        return r"\P{Cn}"
    if name.upper() in _BINARY:
        return _known(_CATEGORY_OF.get(name.upper(), name))
    return _known(name) if name in _CATEGORIES else _known(f"Script={name}")


def _known(name: str) -> str | None:
    # The engine would read an invalid name as the characters p, {, and so on.
    if not _NAME.fullmatch(name):
        return None
    try:
        regex.compile(rf"\p{{{name}}}")
    except regex.error:
        return None
    return rf"\p{{{name}}}"
