"""The standard output of ``floodgate-admin``, as readable text or as JSON.

Names are written one per line, for pipes. For people, unprintable characters are escaped: a topic's
creator chooses its name freely, and terminals obey control characters.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO


def ready_streams() -> None:
    """Prepare standard output and error for any text; if closed, make them discard it."""
    # First of all: a socket must not get a closed stream's number.
    sys.stdout, sys.stderr = _open(sys.stdout), _open(sys.stderr)
    # A name may contain characters missing in the terminal's encoding.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open(stream: TextIO | None) -> TextIO:
    return stream or open(os.devnull, "w", encoding="utf-8")


def unreadable(arguments: Sequence[str]) -> str | None:
    """Return an error text if an argument is not valid UTF-8, otherwise None.

    Python keeps undecodable bytes, and a later encoding would fail.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = repr(os.fsencode(argument))[1:]
            return f"the argument {shown} is not UTF-8: write names and values in UTF-8"
    return None


@contextmanager
def nobody_need_read() -> Iterator[None]:
    """Flush standard output after a block of code; ignore a pipe closed by its reader.

    Raises:
        OSError: Standard output failed for another reason, such as a full disk.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def forget_output() -> None:
    """Discard buffered output, which Python would otherwise try to write again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


T = TypeVar("T")
UNSET = "-"
MAX_KEY_COLUMNS = 40
"""Maximum width of the key column, half of a terminal, although some keys have 80 characters."""
MAX_BATCHES_AHEAD = 2_048
"""Maximum number of texts, about 100 KB each, read from the server before they are written."""
_INDENT = 2
_END = ""
_NONE = "There are none."
_NOT_SET = "It is not set."


class Output:
    """A writer of a command's results to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    async def stream(self, batches: AsyncGenerator[list[str], None]) -> None:
        """Write names while they are received: one per line, or as a JSON array.

        Reads up to MAX_BATCHES_AHEAD batches of names while a pager waits, because a server
        disconnects a non-reading peer after half a minute.
        """
        ahead: asyncio.Queue[str] = asyncio.Queue(MAX_BATCHES_AHEAD)
        writing = asyncio.create_task(_write_all(ahead))
        written = 0
        try:
            async with aclosing(batches):
                async for batch in batches:
                    await _put(ahead, writing, self._names(batch, first=not written))
                    written += len(batch)
            if self.as_json:
                await _put(ahead, writing, "\n]\n" if written else "[]\n")
        finally:
            # Write the received names before the error.
            await _put(ahead, writing, _END)
            await writing
        if not written:
            self.note(_NONE)

    def _names(self, batch: list[str], *, first: bool) -> str:
        if not self.as_json:
            return "".join(f"{name}\n" for name in printable_all(batch))
        body = json.dumps(batch, separators=(",\n  ", ": "))[1:-1]
        return f"[\n  {body}" if first else f",\n  {body}"

    def names(self, names: Sequence[str]) -> None:
        """Write a short list of names: one per line, or as a JSON array."""
        if self.as_json:
            self.json(list(names))
        elif names:
            sys.stdout.write("".join(f"{name}\n" for name in printable_all(names)))
        else:
            self.note(_NONE)

    def table(self, values: Mapping[str, Any], *, hide_unset: bool = False) -> None:
        """Write an object as two aligned columns, or as JSON.

        In the columns, the key of a nested member is written as ``a.b``.
        """
        if self.as_json:
            self.json(values)
            return
        every = [(printable(key), printable(text)) for key, text in flat_rows(values)]
        shown = [row for row in every if not hide_unset or row[1] != UNSET]
        if shown:
            _print_rows(shown)
        else:
            self.note(_NONE)
        if hidden := len(every) - len(shown):
            self.note(f"{hidden} more are not set; --json shows them.")

    def value(self, value: object) -> None:
        """Write any JSON value: an object as a table, an array of strings one per line."""
        if self.as_json:
            self.json(value)
        elif isinstance(value, dict):
            self.table(value)
        elif isinstance(value, list) and all(isinstance(one, str) for one in value):
            self.names(value)
        elif value is None:
            self.note(_NOT_SET)
        else:
            self.say(cell(value) if isinstance(value, str) else json.dumps(value))

    def messages(self, found: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of a topic, separated by empty lines, or as a JSON array."""
        if self.as_json:
            self.json(found)
            return
        for number, message in enumerate(found):
            if number:
                self.say("")
            self.table(message)

    def text(self, text: str, key: str) -> None:
        """Write a plain text, or a JSON object with the text in the member ``key``."""
        if self.as_json:
            self.json({key: text})
        else:
            self.say(text)

    def say(self, line: str) -> None:
        """Write a line of readable output, with control characters escaped."""
        sys.stdout.write(f"{printable(line)}\n")

    def either(self, found: T, lines: Callable[[T], Iterable[str]]) -> None:
        """Write a value as JSON, or as the readable lines that the function ``lines`` returns."""
        if self.as_json:
            self.json(found)
        else:
            for line in lines(found):
                self.say(line)

    def changed(self, done: str, details: Mapping[str, object]) -> None:
        """Report a completed change, such as ``created topic``, as a sentence or as JSON.

        The JSON object is ``{"created": "topic"}``.
        """
        if self.as_json:
            verb, _, thing = done.partition(" ")
            self.json({verb: thing, **details})
        else:
            self.say(f"{done[0].upper()}{done[1:]}.")

    def json(self, value: object) -> None:
        """Write a value as indented JSON."""
        sys.stdout.write(f"{json.dumps(value, indent=_INDENT)}\n")

    def note(self, sentence: str) -> None:
        """Write a note to a person at a terminal; write nothing if output goes to a pipe."""
        if sys.stdout.isatty() and not self.as_json:
            sys.stderr.write(f"{sentence}\n")


async def _put(ahead: asyncio.Queue[str], writing: asyncio.Task[None], text: str) -> None:
    """Queue text for the task that writes output; raise that task's error if it failed."""
    putting = asyncio.ensure_future(ahead.put(text))
    await asyncio.wait({putting, writing}, return_when=asyncio.FIRST_COMPLETED)
    if writing.done():
        putting.cancel()
        await writing


async def _write_all(ahead: asyncio.Queue[str]) -> None:
    """Write queued text in a thread, because a pager may block the write."""
    while (text := await ahead.get()) != _END:
        await asyncio.to_thread(sys.stdout.write, text)


def printable(text: str) -> str:
    """Return a text with its control characters escaped as in Python's string literals."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def printable_all(names: Sequence[str]) -> Iterable[str]:
    """Return names with control characters escaped; if no name has any, one check is enough."""
    return names if "".join(names).isprintable() else map(printable, names)


def flat_rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys and values of an object; a nested member's key is ``a.b``."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat_rows(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", cell(value)


def cell(value: object) -> str:
    """Return a JSON value as readable text for a table."""
    if value is None or value == "" or value == [] or value == {}:
        return UNSET
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(cell(item) for item in value)
    return json.dumps(value)


def _print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Write keys and values in two aligned columns; a very long key shifts its value right."""
    from rich.console import Console  # 0.1 s, avoided by lists of names
    from rich.text import Text

    class Table(Console):
        def on_broken_pipe(self) -> NoReturn:
            # Rich would end the process.
            raise BrokenPipeError

    console = Table(soft_wrap=True, highlight=False)
    width = min(max(len(key) for key, _ in rows), MAX_KEY_COLUMNS)
    for key, text in rows:
        console.print(Text.assemble((key, "cyan"), " " * max(width - len(key), 0), "  ", text))
