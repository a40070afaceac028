"""Parser of Pulsar's configuration files, which are Java properties files.

``parse_properties`` is pure; only ``read_properties`` opens a file.

Source: java.util.Properties.load, which Pulsar's PulsarConfigurationLoader calls.
Differs: UTF-8 instead of ISO-8859-1, and a line other than ``key=value`` is refused instead of
becoming an unintended key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Pulsar's own broker.conf has about 100 kB; a far larger file is not a configuration file.
MAX_FILE_BYTES = 4 * 1024 * 1024

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BAD_UNICODE_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_SEPARATOR = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*|[ \t\f])")
_SHOWN_CHARACTERS = 8
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_setting(text: str) -> tuple[str, str]:
    """Parse a setting ``key=value`` from the command line.

    The value may contain ``=`` and may be empty.

    Raises:
        ConfigError: There is no ``=``, the key is malformed, or the value is not UTF-8 text.
    """
    key, separator, value = text.partition("=")
    key = key.strip()
    if not separator or not _KEY.fullmatch(key):
        raise ConfigError(
            [f"--set {_shown(key)} is not key=value: write, for example, --set webServicePort=0"]
        )
    if any("\ud800" <= one <= "\udfff" for one in value):  # Bytes of no character.
        raise ConfigError([f"--set {key[:100]}: the value is not UTF-8 text"])
    return key, value.strip()


def read_properties(path: Path) -> dict[str, str]:
    """Read and parse a configuration file.

    Raises:
        ConfigError: The file cannot be opened, is too large, is not UTF-8 text, or is malformed.
    """
    return parse_properties(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Return the text of a configuration file, without parsing it.

    Raises:
        ConfigError: The file cannot be opened, is too large, or is not UTF-8 text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError([f"{path}: cannot be read ({reason}); give a readable file"]) from None
    except ValueError:
        raise ConfigError([f"{str(path)!r} is not a file name"]) from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError([f"{path}: larger than {MAX_FILE_BYTES} bytes; is it a configuration?"])
    return _decoded(content, str(path))


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = len(re.findall(rb"\r\n|\r|\n", before)) + 1
        raise ConfigError(
            [f"{source}, line {line}: not UTF-8 text; save the file as UTF-8"]
        ) from None


def parse_properties(text: str, source: str) -> dict[str, str]:
    r"""Parse the text of a properties file; of repeated keys the last value counts.

    Comments begin with ``#`` or ``!``; key and value are separated by ``=``, ``:`` or blanks; a
    line ending in a backslash continues; ``\t \n \r \f \uXXXX`` and ``\`` before any other
    character are escapes.

    Args:
        text: The file's text.
        source: The file's name, for the error message.

    Raises:
        ConfigError: Some lines are malformed; a sentence for each, with its number.
    """
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, line in _logical_lines(text):
        problem = _take_line(line, values)
        if problem:
            problems.append(f"{source}, line {number}: {problem}")
    if problems:
        raise ConfigError(problems)
    return values


def key_lines(text: str) -> dict[str, int]:
    """Return a dict from each key to the number of the line that sets it."""
    return {_unescaped(_split(line)[0]): number for number, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines, and yield (number of the first line, joined line).

    Comments and blank lines are left out.
    """
    pending: list[str] = []
    first = 1
    for number, raw in enumerate(_LINE_END.split(text), start=1):
        line = raw.lstrip(_BLANKS)
        if not pending:
            first = number
            if not line or line[0] in "#!":
                continue
        if _goes_on(line):
            pending.append(line[:-1])
            continue
        yield first, "".join([*pending, line])
        pending.clear()
    if pending:
        yield first, "".join(pending)


def _goes_on(line: str) -> bool:
    """Return True if the next line continues a line that ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _take_line(line: str, values: dict[str, str]) -> str | None:
    """Store a line's key and value in ``values``; return an error, or None if valid."""
    if not line.strip(_BLANKS):
        return None
    if _BAD_UNICODE_ESCAPE.search(line):
        return r"malformed \uXXXX escape: four hexadecimal digits must follow \u"
    raw_key, raw_value = _split(line)
    key = _unescaped(raw_key)
    if raw_value is None or not _KEY.fullmatch(key):
        return f"{_shown(raw_key)} is not key=value; put # before a comment"
    values[key] = _unescaped(raw_value)
    return None


def _split(line: str) -> tuple[str, str | None]:
    """Split a line into key and value at the first unescaped separator.

    Without a separator the value is None.
    """
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 2
            continue
        separator = _SEPARATOR.match(line, position)
        if separator:
            return line[:position], line[separator.end() :]
        position += 1
    return line, None


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_escape_value, text)
    # A character beyond the basic plane is two escapes, as in Java's own strings.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape_value(match: re.Match[str]) -> str:
    escape = match.group(1)
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _NAMED_ESCAPES.get(escape, escape)


def _shown(raw_key: str) -> str:
    """Return the beginning of a malformed key; the rest may be a misplaced secret."""
    return repr(
        raw_key if len(raw_key) <= _SHOWN_CHARACTERS else f"{raw_key[:_SHOWN_CHARACTERS]}..."
    )
