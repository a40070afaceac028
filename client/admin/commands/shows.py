"""What verbs of ``floodgate-admin`` do with a request: send it, and show what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from client.admin.commands.output import Output
    from client.admin.rest import AdminRest, Body


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the values of the options that it was made of."""

    rest: AdminRest
    method: str
    path: str
    body: Body | None
    values: Mapping[str, Any]

    async def mapping(self) -> dict[str, Any]:
        """Return the object that is answered."""
        return await self.rest.mapping(self.path, self.method, self.body)

    async def text(self) -> str:
        """Return the text that is answered."""
        return await self.rest.text(self.method, self.path, self.body)


Show: TypeAlias = "Callable[[Asked, Output], Awaitable[None]]"


async def table(asked: Asked, output: Output) -> None:
    """Show an object."""
    output.table(await asked.mapping())


async def sorted_table(asked: Asked, output: Output) -> None:
    """Show an object in the order of its keys."""
    output.table(dict(sorted((await asked.mapping()).items())))


async def set_members(asked: Asked, output: Output) -> None:
    """Show the members of an object that are set."""
    output.table(await asked.mapping(), hide_unset=True)


async def names(asked: Asked, output: Output) -> None:
    """Show a list of names as it arrives."""
    await output.stream(asked.rest.names([asked.path]))


async def sorted_names(asked: Asked, output: Output) -> None:
    """Show a short list of names in their order."""
    output.names(sorted(await asked.rest.strings(asked.path)))


async def value(asked: Asked, output: Output) -> None:
    """Show JSON of any kind."""
    output.value(await asked.rest.value(asked.method, asked.path, asked.body))


async def message(asked: Asked, output: Output) -> None:
    """Show a message of a topic."""
    output.messages([await asked.rest.message(asked.path)])


def text(key: str) -> Show:
    """Show a text, which JSON calls ``key``."""

    async def show(asked: Asked, output: Output) -> None:
        output.text((await asked.text()).strip(), key)

    return show


def lines(of: Callable[[dict[str, Any]], Iterable[str]]) -> Show:
    """Show an object; people see the lines that are made of it."""

    async def show(asked: Asked, output: Output) -> None:
        output.either(await asked.mapping(), of)

    return show


@dataclass(frozen=True, slots=True)
class Done:
    """A change, and the words for it.

    Attributes:
        words: ``created {topic}``: the first is the key in JSON, the others are its value.
        details: More for JSON: names of options, or ``key=name``; what is no option is a word.
    """

    words: str
    details: str = ""

    async def __call__(self, asked: Asked, output: Output) -> None:
        """Send the request, and say so."""
        await asked.text()
        pairs = (one.rpartition("=") for one in self.details.split())
        details = {key or name: _plain(asked.values.get(name, name)) for key, _, name in pairs}
        output.changed(self.words.format(**asked.values), details)


def _plain(found: object) -> object:
    return found if isinstance(found, int | float | str | list | dict) else str(found)
