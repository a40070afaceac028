"""Commands of ``floodgate-admin``, declared as rows of a table or as functions.

Each row has a template of a request; the names in its braces become the command's options.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from client.admin.commands.call import PROGRAM, Call
from client.admin.commands.options import COMMON, OPTIONS, Option, parameter
from client.admin.url import path, query
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from client.admin.commands.output import Output
    from client.admin.rest import AdminRest, Body


@dataclass(frozen=True, slots=True)
class Asked:
    """A command's request to the server, together with the values of the command's options."""

    rest: AdminRest
    method: str
    path: str
    body: Body | None
    values: Mapping[str, Any]

    async def mapping(self) -> dict[str, Any]:
        """Send the request, and return the JSON object in the response."""
        return await self.rest.mapping(self.path, self.method, self.body)

    async def text(self) -> str:
        """Send the request, and return the text of the response."""
        return await self.rest.text(self.method, self.path, self.body)


Show: TypeAlias = "Callable[[Asked, Output], Awaitable[None]]"


async def table(asked: Asked, output: Output) -> None:
    """Send a request, and write the JSON object in the response as a table."""
    output.table(await asked.mapping())


async def sorted_table(asked: Asked, output: Output) -> None:
    """Send a request, and write the JSON object in the response as a table sorted by key."""
    output.table(dict(sorted((await asked.mapping()).items())))


async def set_members(asked: Asked, output: Output) -> None:
    """Send a request, and write the JSON object in the response without its unset members."""
    output.table(await asked.mapping(), hide_unset=True)


async def names(asked: Asked, output: Output) -> None:
    """Send a request, and write the names in the response while they are received."""
    await output.stream(asked.rest.names([asked.path]))


async def sorted_names(asked: Asked, output: Output) -> None:
    """Send a request, and write the short list of names in the response, sorted."""
    output.names(sorted(await asked.rest.strings(asked.path)))


async def value(asked: Asked, output: Output) -> None:
    """Send a request, and write the response, which may be any JSON value."""
    output.value(await asked.rest.value(asked.method, asked.path, asked.body))


async def message(asked: Asked, output: Output) -> None:
    """Send a request, and write the topic's message in the response."""
    output.messages([await asked.rest.message(asked.path)])


def text(key: str) -> Show:
    """Return a function that writes a response's text; in JSON output, as the member ``key``."""

    async def show(asked: Asked, output: Output) -> None:
        output.text((await asked.text()).strip(), key)

    return show


def lines(of: Callable[[dict[str, Any]], Iterable[str]]) -> Show:
    """Return a function that sends a request, and writes the JSON object in the response.

    For readable output, the function writes the lines that ``of`` returns for the object.
    """

    async def show(asked: Asked, output: Output) -> None:
        output.either(await asked.mapping(), of)

    return show


@dataclass(frozen=True, slots=True)
class Done:
    """A callable that sends a change to the server, and reports it as done.

    Attributes:
        words: The report in words, such as ``created {topic}``. In JSON, the first word is the key
            and the rest its value.
        details: Further members of the JSON object: names of options, or ``key=name``. A name that
            is no option is used as the value.
    """

    words: str
    details: str = ""

    async def __call__(self, asked: Asked, output: Output) -> None:
        """Send the request, and report the change as done."""
        await asked.text()
        pairs = (one.rpartition("=") for one in self.details.split())
        details = {key or name: _plain(asked.values.get(name, name)) for key, _, name in pairs}
        output.changed(self.words.format(**asked.values), details)


def _plain(found: object) -> object:
    return found if isinstance(found, int | float | str | list | dict) else str(found)


_PLACE = re.compile(r"\{(\w+|\*)(?:\.(\w+))?(\?)?\}")
_MEMBER = re.compile(r"(\w+)=\{(\w+)\}")
_OWN = "*"
_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_COLUMNS = 78
_BREAKS = TextWrapper(
    _COLUMNS - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)


@dataclass(frozen=True, slots=True)
class Verb:
    """A command that sends a single request to the admin REST API.

    Attributes:
        name: The name in pulsar-admin, which is also used here.
        text: The help text.
        request: The request as ``METHOD path?query body``. The path starts below ``/admin/v2``,
            unless it begins with a slash. ``{option}`` stands for the value of an option,
            ``{option?}`` for that of an optional one, and ``{*}`` for an object of all own options.
            Empty values are omitted.
        asked: The request in words that complete the error text "cannot ...".
        show: Function that sends the request, and writes the response.
        examples: Example command lines after the command's name, one per line. The argument is
            inserted.
        own: Options that only this command has.
    """

    name: str
    text: str
    request: str
    asked: str
    show: Show
    examples: str = ""
    own: dict[str, Option] = field(default_factory=dict)

    def help(self, before: str) -> str:
        """Return the command's help text with examples; ``before`` is the text before its name."""
        thing = next((f"{one.example} " for one in self.options().values() if one.example), "")
        lines = (
            line if line[:1].isalnum() else f"{thing}{line}" for line in self.examples.split("\n")
        )
        examples = "\n".join(f"{before} {self.name} {line}".rstrip() for line in lines)
        return f"{self.text}\n\nExamples:\n{examples}"

    def options(self) -> dict[str, Option]:
        """Return the command's options in the order of the help text."""
        optional = {name: bool(mark) for name, _, mark in _PLACE.findall(self.request)}
        known = {name: one for name, one in OPTIONS.items() if not one.spellings}
        known |= {name: one for name, one in self.own.items() if name not in OPTIONS}
        known |= OPTIONS | self.own
        names = sorted((optional.keys() | self.own.keys()) - {_OWN}, key=list(known).index)
        return {
            name: replace(known[name], default=None) if optional.get(name) else known[name]
            for name in names
        }

    def call(self, call: Call, **given: Any) -> None:  # noqa: ANN401 - depends on the options
        """Send the request with the options' values, and write the response."""
        own = {name: given[name] for name in self.own if given[name] not in (None, [])}
        values = {**given, _OWN: own}
        method, target, *body = self.request.split(" ")
        location, _, members = target.partition("?")
        parameters = {name: _text(values[place]) for name, place in _MEMBER.findall(members)}
        found = _PLACE.fullmatch(body[0]) if body else None
        sent = None if found is None else values[found[1]]

        async def work(rest: AdminRest, output: Output) -> None:
            from client.admin.rest import Body

            whole = f"{_path(location, values)}{query(**parameters)}"
            asked = Asked(rest, method, whole, None if sent is None else Body(sent), values)
            await self.show(asked, output)

        call.ask(self.asked.format(**values), work)


@dataclass(frozen=True, slots=True)
class Function:
    """A command implemented by a function, whose first argument is the :class:`Call`.

    Each further argument is an option, which its name selects from the common table or ``own``.
    """

    name: str
    call: Callable[..., None]
    own: dict[str, Option] = field(default_factory=dict)

    def options(self) -> dict[str, Option]:
        """Return the command's options in the order of the function's arguments."""
        known = {**OPTIONS, **self.own}
        arguments = list(inspect.signature(self.call).parameters.values())[1:]
        return {
            one.name: known[one.name]
            if one.default is one.empty
            else replace(known[one.name], default=one.default)
            for one in arguments
        }

    def help(self, _: str) -> str:
        """Return the command's help text with examples, from the function's docstring."""
        return inspect.cleandoc(self.call.__doc__ or "")


def _path(template: str, values: Mapping[str, Any]) -> str:
    segments: list[object] = [] if template.startswith("/") else ["admin", "v2"]
    for segment in template.strip("/").split("/"):
        found = _PLACE.fullmatch(segment)
        value = values[found[1]] if found else segment
        segments += _segments(getattr(value, found[2]) if found and found[2] else value)
    return path(*segments)


def _segments(value: object) -> list[object]:
    if isinstance(value, TopicName):
        return [value.domain, *_segments(value.namespace), value.local_name]
    if isinstance(value, NamespaceName):
        return [value.tenant, value.local_name]
    return [] if value is None else [value]


def _text(value: object) -> str | bool | None:
    return value if value is None or isinstance(value, bool) else str(value)


def group(name: str, text: str, *examples: str) -> typer.Typer:
    """Return an empty group of commands, such as ``topics``.

    Args:
        name: The name in pulsar-admin, which is also used here.
        text: The help text.
        examples: Example command lines after the group's name.
    """
    shown = _fitted("\n".join(f"{PROGRAM} {name} {example}" for example in examples))
    return typer.Typer(name=name, no_args_is_help=True, help=text, epilog=f"Examples:\n{shown}")


def add(app: typer.Typer, *rows: Verb | Function) -> None:
    """Add the commands that rows declare to a group."""
    for row in rows:
        command = _command(row)
        command.__doc__ = _fitted(row.help(f"{PROGRAM} {app.info.name}"))
        app.command(row.name)(command)


def _command(row: Verb | Function) -> Callable[..., None]:
    options = row.options()

    def command(context: typer.Context, **given: Any) -> None:  # noqa: ANN401 - typer's
        before: Call = context.obj
        row.call(before.then(given), **{name: one.of(given[name]) for name, one in options.items()})

    return taking(options | COMMON, command)


def taking(options: Mapping[str, Option], function: Callable[..., None]) -> Callable[..., None]:
    """Give a function a signature from which Typer derives the given options."""
    together = [_CONTEXT, *(parameter(name, option) for name, option in options.items())]
    function.__annotations__ = {one.name: one.annotation for one in together}
    function.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    return function


def _fitted(text: str) -> str:
    """Break example commands wider than a terminal, so that they can still be pasted."""
    lines = []
    for line in text.splitlines():
        is_example = line.startswith(f"{PROGRAM} ") and len(line) > _COLUMNS
        lines.append(" \\\n".join(_BREAKS.wrap(line)) if is_example else line)
    return "\n".join(lines)
