"""Verbs of ``floodgate-admin``: each is a row of a table, or a function where it does more.

A row says what is sent; its options follow from the names in braces there.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

import typer

from client.admin.commands.call import PROGRAM, Call
from client.admin.commands.options import COMMON, OPTIONS, Option, parameter
from client.admin.commands.shows import Asked
from client.admin.url import path, query
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from client.admin.commands.output import Output
    from client.admin.commands.shows import Show
    from client.admin.rest import AdminRest

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
    """A verb that is one call of the admin REST.

    Attributes:
        name: As pulsar-admin has it.
        text: What it does.
        request: ``METHOD path?query body``, the path below ``/admin/v2`` or from a first slash on.
            ``{option}`` is the value of an option, and ``{option?}`` of one that is not required;
            ``{*}`` is an object of all own options. What has no value is left out.
        asked: What is asked for, so that "cannot ..." is a sentence.
        show: Sends the request, and writes what is answered.
        examples: What stands behind its name, a line each; the argument is filled in.
        own: Options that no other verb has.
    """

    name: str
    text: str
    request: str
    asked: str
    show: Show
    examples: str = ""
    own: dict[str, Option] = field(default_factory=dict)

    def help(self, before: str) -> str:
        """Return what it does, with examples behind the words before its name."""
        thing = next((f"{one.example} " for one in self.options().values() if one.example), "")
        lines = (
            line if line[:1].isalnum() else f"{thing}{line}" for line in self.examples.split("\n")
        )
        examples = "\n".join(f"{before} {self.name} {line}".rstrip() for line in lines)
        return f"{self.text}\n\nExamples:\n{examples}"

    def options(self) -> dict[str, Option]:
        """Return its options in the order in which help shows them."""
        optional = {name: bool(mark) for name, _, mark in _PLACE.findall(self.request)}
        known = {name: one for name, one in OPTIONS.items() if not one.spellings}
        known |= {name: one for name, one in self.own.items() if name not in OPTIONS}
        known |= OPTIONS | self.own
        names = sorted((optional.keys() | self.own.keys()) - {_OWN}, key=list(known).index)
        return {
            name: replace(known[name], default=None) if optional.get(name) else known[name]
            for name in names
        }

    def call(self, call: Call, **given: Any) -> None:  # noqa: ANN401 - whatever its options are
        """Send the request with the values of the options, and write what is answered."""
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
    """A verb that does more: its function's first argument is the :class:`Call`.

    The others are options, by the names that they have in the table of all, or in ``own``.
    """

    name: str
    call: Callable[..., None]
    own: dict[str, Option] = field(default_factory=dict)

    def options(self) -> dict[str, Option]:
        """Return its options in the order of its function's arguments."""
        known = {**OPTIONS, **self.own}
        arguments = list(inspect.signature(self.call).parameters.values())[1:]
        return {
            one.name: known[one.name]
            if one.default is one.empty
            else replace(known[one.name], default=one.default)
            for one in arguments
        }

    def help(self, _: str) -> str:
        """Return what it does, with examples."""
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
    """Return a group of verbs.

    Args:
        name: As pulsar-admin has it.
        text: What it is about.
        examples: What stands behind its name.
    """
    shown = _fitted("\n".join(f"{PROGRAM} {name} {example}" for example in examples))
    return typer.Typer(name=name, no_args_is_help=True, help=text, epilog=f"Examples:\n{shown}")


def add(app: typer.Typer, *rows: Verb | Function) -> None:
    """Give a group the verbs of some rows."""
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
    """Have Typer take these options for those of a function; its first argument is ``context``."""
    together = [_CONTEXT, *(parameter(name, option) for name, option in options.items())]
    function.__annotations__ = {one.name: one.annotation for one in together}
    function.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    return function


def _fitted(text: str) -> str:
    """Break example commands that are wider than a terminal, so that they can still be pasted."""
    lines = []
    for line in text.splitlines():
        is_example = line.startswith(f"{PROGRAM} ") and len(line) > _COLUMNS
        lines.append(" \\\n".join(_BREAKS.wrap(line)) if is_example else line)
    return "\n".join(lines)
