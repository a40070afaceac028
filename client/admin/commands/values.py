"""Parsers of option values, compatible with pulsar-admin: names, properties, times, sizes, ids."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from proto.names import DOMAINS, InvalidNameError, NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TIME = re.compile(r"(-?\d+)([smhdwy]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_SIZE = re.compile(r"(-?\d+)([kmgt]?)b?")
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_NAMED = {"earliest": "-1:-1", "latest": f"{2**63 - 1}:{2**63 - 1}"}
_ID = re.compile(r"(-?\d+):(-?\d+)")


def seconds(text: str) -> int:
    """Parse a time such as ``90``, ``90s``, ``10m``, ``3h``, ``2d`` or ``5w`` into seconds.

    A negative number stays unchanged.

    Raises:
        typer.BadParameter: The text is not a time.
    """
    found = _TIME.fullmatch(text.strip().lower())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time: write 90s, 10m, 3h, 2d or 5w")
    number = int(found[1])
    return number if number < 0 else number * SECONDS[found[2]]


def milliseconds(text: str) -> int:
    """Parse a time such as ``10m`` into milliseconds."""
    return seconds(text) * 1000


def minutes(text: str) -> int:
    """Parse a time such as ``10m`` into minutes.

    Raises:
        typer.BadParameter: The time is not a whole number of minutes.
    """
    found = seconds(text)
    if found > 0 and found % 60:
        raise typer.BadParameter(f"{text!r} should be whole minutes: write 10m, 3h, 2d or 5w")
    return found if found < 0 else found // 60


def size_bytes(text: str) -> int:
    """Parse a size such as ``4096``, ``64K``, ``10M``, ``16G`` or ``3T`` into bytes.

    A negative number stays unchanged.

    Raises:
        typer.BadParameter: The text is not a size.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no size: write 4096, 64K, 10M, 16G or 3T")
    number = int(found[1])
    return number if number < 0 else number * _BYTES[found[2]]


def megabytes(text: str) -> int:
    """Parse a size such as ``16G`` into megabytes.

    Raises:
        typer.BadParameter: The size is not a whole number of megabytes.
    """
    found = size_bytes(text)
    if found > 0 and found % _BYTES["m"]:
        raise typer.BadParameter(f"{text!r} should be whole megabytes: write 10M, 16G or 3T")
    return found if found < 0 else found // _BYTES["m"]


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser that accepts one of the given names in any case.

    A broker would ignore an unknown name, as if none were given.
    """

    def parse(text: str) -> str:
        for name in names:
            if name.lower() == text.lower():
                return name
        raise typer.BadParameter(f"{text!r} should be one of: {', '.join(names)}")

    return parse


def document(text: str) -> Any:  # noqa: ANN401 - JSON
    """Parse a JSON text; ``@FILE`` reads the text from a file.

    Raises:
        typer.BadParameter: The text is not JSON, or the file is unreadable.
    """
    try:
        return json.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
    except OSError as error:
        raise typer.BadParameter(f"{text[:200]} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise typer.BadParameter(f"{text[:50]!r} is no JSON: write it, or @FILE with it") from None


class MessageId(dict[str, int]):
    """A message id as the JSON object that the admin REST API accepts."""


def message_id(text: str) -> MessageId:
    """Parse a message id: ``LEDGER:ENTRY``, ``earliest`` or ``latest``.

    Raises:
        typer.BadParameter: The text is not a message id.
    """
    found = _ID.fullmatch(_NAMED.get(text.lower(), text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is no message id: write LEDGER:ENTRY, earliest, latest")
    return MessageId(ledgerId=int(found[1]), entryId=int(found[2]), partitionIndex=-1)


class Entries(int):
    """A number of entries, written as ``10`` in a URL path and ``10 entries`` in a sentence."""

    def __format__(self, _: str) -> str:
        return "1 entry" if self == 1 else f"{int(self)} entries"


class Pairs(dict[str, str]):
    """Properties of a topic or schema, written as ``k1=v1,k2=v2``."""


class TopicDomain(StrEnum):
    """Pulsar's two topic domains, spelled as in pulsar-admin."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non_persistent"


class Mode(StrEnum):
    """The kinds of topics that a listing can include, spelled as in pulsar-admin."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non_persistent"
    ALL = "all"


def domains_of(domain: TopicDomain | None) -> Sequence[str]:
    """Return the topic domains that an option selects, as in topic names; None selects both."""
    return DOMAINS if domain is None else (domain.value.replace("_", "-"),)


def parsed_topic(text: str) -> TopicName:
    """Parse a topic's name from the command line.

    Raises:
        typer.BadParameter: The name is invalid.
    """
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise typer.BadParameter(
            f"{error} (a topic is persistent://tenant/namespace/topic, tenant/namespace/topic, or "
            "topic for one in public/default)"
        ) from None


def parsed_namespace(text: str) -> NamespaceName:
    """Parse a namespace's name, ``tenant/namespace``, from the command line.

    Raises:
        typer.BadParameter: The name is invalid.
    """
    try:
        return NamespaceName.parse(text)
    except InvalidNameError:
        raise typer.BadParameter(f"{text!r} is no namespace: write tenant/namespace") from None


def parsed_pairs(text: str) -> Pairs:
    """Parse properties written as ``k1=v1,k2=v2``.

    Raises:
        typer.BadParameter: A part has no ``=``, or no key.
    """
    pairs = Pairs()
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if not separator or not key.strip():
            raise typer.BadParameter(f"{part!r} is no key=value: write k1=v1,k2=v2")
        pairs[key.strip()] = value.strip()
    return pairs


def merged(several: Sequence[Pairs] | None) -> Pairs:
    """Merge the properties of a repeated option; later values override earlier ones."""
    return Pairs({key: value for pairs in several or () for key, value in pairs.items()})


def words_of(several: Sequence[str] | None) -> list[str]:
    """Return all words of a repeated option whose values have the form ``a,b``."""
    words = [word.strip() for text in several or () for word in text.split(",")]
    return [word for word in words if word]
