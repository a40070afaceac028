"""Times, sizes and message ids of a command line, as pulsar-admin takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

_TIME = re.compile(r"(-?\d+)([smhdwy]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_SIZE = re.compile(r"(-?\d+)([kmgt]?)b?")
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_NAMED = {"earliest": "-1:-1", "latest": f"{2**63 - 1}:{2**63 - 1}"}
_ID = re.compile(r"(-?\d+):(-?\d+)")


def seconds(text: str) -> int:
    """Parse ``90``, ``90s``, ``10m``, ``3h``, ``2d``, ``5w``; a number below 0 stays as it is.

    Raises:
        typer.BadParameter: It is none of these.
    """
    found = _TIME.fullmatch(text.strip().lower())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time: write 90s, 10m, 3h, 2d or 5w")
    number = int(found[1])
    return number if number < 0 else number * _SECONDS[found[2]]


def minutes(text: str) -> int:
    """Parse a time of whole minutes.

    Raises:
        typer.BadParameter: It is not of whole minutes.
    """
    found = seconds(text)
    if found > 0 and found % 60:
        raise typer.BadParameter(f"{text!r} should be whole minutes: write 10m, 3h, 2d or 5w")
    return found if found < 0 else found // 60


def size_bytes(text: str) -> int:
    """Parse ``4096``, ``64K``, ``10M``, ``16G``, ``3T``; a number below 0 stays as it is.

    Raises:
        typer.BadParameter: It is none of these.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no size: write 4096, 64K, 10M, 16G or 3T")
    number = int(found[1])
    return number if number < 0 else number * _BYTES[found[2]]


def megabytes(text: str) -> int:
    """Parse a size of whole megabytes.

    Raises:
        typer.BadParameter: It is not of whole megabytes.
    """
    found = size_bytes(text)
    if found > 0 and found % _BYTES["m"]:
        raise typer.BadParameter(f"{text!r} should be whole megabytes: write 10M, 16G or 3T")
    return found if found < 0 else found // _BYTES["m"]


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser of one of some names, in capitals or not.

    A broker takes a name that it does not know for none at all.
    """

    def parse(text: str) -> str:
        for name in names:
            if name.lower() == text.lower():
                return name
        raise typer.BadParameter(f"{text!r} should be one of: {', '.join(names)}")

    return parse


class MessageId(dict[str, int]):
    """A message id, as the admin REST takes it."""


def message_id(text: str) -> MessageId:
    """Parse ``LEDGER:ENTRY``, ``earliest`` or ``latest``.

    Raises:
        typer.BadParameter: It is none of these.
    """
    found = _ID.fullmatch(_NAMED.get(text.lower(), text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is no message id: write LEDGER:ENTRY, earliest, latest")
    return MessageId(ledgerId=int(found[1]), entryId=int(found[2]), partitionIndex=-1)
