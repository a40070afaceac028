"""Actions of verbs: send the request, and show the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from client.admin.commands.output import Output
    from client.admin.rest import AdminRest, Body


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the option values behind it."""

    rest: AdminRest
    method: str
    path: str
    body: Body | None
    values: Mapping[str, Any]

    async def mapping(self) -> dict[str, Any]:
        """Return the object in the answer."""
        return await self.rest.mapping(self.path, self.method, self.body)

    async def text(self) -> str:
        """Return the text of the answer."""
        return await self.rest.text(self.method, self.path, self.body)


Show: TypeAlias = "Callable[[Asked, Output], Awaitable[None]]"


async def table(asked: Asked, output: Output) -> None:
    """Show an object."""
    output.table(await asked.mapping())


async def sorted_table(asked: Asked, output: Output) -> None:
    """Show an object in the order of its keys."""
    output.table(dict(sorted((await asked.mapping()).items())))


async def set_members(asked: Asked, output: Output) -> None:
    """Show the set members of an object."""
    output.table(await asked.mapping(), hide_unset=True)


async def names(asked: Asked, output: Output) -> None:
    """Show a list of names as it arrives."""
    await output.stream(asked.rest.names([asked.path]))


async def sorted_names(asked: Asked, output: Output) -> None:
    """Show a short list of names, sorted."""
    output.names(sorted(await asked.rest.strings(asked.path)))


async def value(asked: Asked, output: Output) -> None:
    """Show any JSON."""
    output.value(await asked.rest.value(asked.method, asked.path, asked.body))


async def message(asked: Asked, output: Output) -> None:
    """Show a message of a topic."""
    output.messages([await asked.rest.message(asked.path)])


def text(key: str) -> Show:
    """Return an action showing a text, in JSON under ``key``."""

    async def show(asked: Asked, output: Output) -> None:
        output.text((await asked.text()).strip(), key)

    return show


def lines(of: Callable[[dict[str, Any]], Iterable[str]]) -> Show:
    """Return an action showing an object; for people the lines made from the object."""

    async def show(asked: Asked, output: Output) -> None:
        output.either(await asked.mapping(), of)

    return show


@dataclass(frozen=True, slots=True)
class Done:
    """A change, and its report.

    Attributes:
        words: ``created {topic}``: the first word is the key in JSON, the rest its value.
        details: Further members for JSON: names of options, or ``key=name``; a name without an
            option is a literal.
    """

    words: str
    details: str = ""

    async def __call__(self, asked: Asked, output: Output) -> None:
        """Send the request, and report the change."""
        await asked.text()
        pairs = (one.rpartition("=") for one in self.details.split())
        details = {key or name: _plain(asked.values.get(name, name)) for key, _, name in pairs}
        output.changed(self.words.format(**asked.values), details)


def _plain(found: object) -> object:
    return found if isinstance(found, int | float | str | list | dict) else str(found)
