"""The JSON document of an injected fault.

Example::

    {"on": ["LOOKUP"], "where": {"namespace": "public/default"},
     "when": {"every": 2, "times": 3}, "do": {"action": "error", "error": "ServiceNotReady"}}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, get_args

import proto.PulsarApi_pb2 as pb
from server.documents import (
    Choice,
    DocumentError,
    Member,
    Nested,
    Number,
    Part,
    Several,
    Text,
    kind,
)

MAX_COMMANDS = 100
MAX_TEXT = 1_000
MAX_DELAY_MS = 3_600_000
_DOMAINS = ("persistent://", "non-persistent://")
_STARTS = sorted({domain[:end] for domain in _DOMAINS for end in range(len(domain))})
"""Possible texts before a ``*`` in a pattern that matches a topic's full name."""
WITH_CHECKSUM = frozenset({"SEND", "MESSAGE"})


class Direction(Enum):
    """The sender of the commands that a fault affects: the client or the server."""

    RECEIVED = "received"
    """Commands sent by clients."""
    SENT = "sent"
    """Commands sent by the server, or at a proxy by the brokers behind it."""


def _in_full(topic: str) -> None:
    first, star, _ = topic.partition("*")
    if not any(first.startswith(d) or (star and d.startswith(first)) for d in _DOMAINS):
        raise ValueError(
            f"no full name of a topic fits {topic[:50]!r}: write it as "
            "persistent://public/default/orders or */orders"
        )


def _marked(noun: str, mark: str, example: str) -> Text:
    """Return the kind of document fields whose text contains ``mark`` or ``*``."""

    def check(text: str) -> None:
        if not {mark, "*"}.intersection(text):
            raise ValueError(f"no {noun} fits {text[:50]!r}: write it as {example}")

    return Text(MAX_TEXT, f"[{mark}*]", check)


_TOPIC = Text(MAX_TEXT, rf"^({'|'.join(_DOMAINS)}|({'|'.join(_STARTS)})\*)", _in_full)


@dataclass(frozen=True)
class Where(Part):
    """Conditions on a command's client and topic; a fault applies if all hold; ``*`` is any text.

    Attributes:
        topic: Full name of the command's topic.
        namespace: Tenant and namespace of the topic, or of the topic list.
        client_version: The client's announced version in CONNECT.
        connection: The client's address, ``host:port``.
    """

    topic: str | None = field(default=None, metadata=kind(_TOPIC))
    namespace: str | None = field(
        default=None, metadata=kind(_marked("namespace", "/", "public/default"))
    )
    client_version: str | None = field(default=None, metadata=kind(Text(MAX_TEXT)))
    connection: str | None = field(
        default=None, metadata=kind(_marked("address", ":", "127.0.0.1:*"))
    )


@dataclass(frozen=True)
class When(Part):
    """Which of the matching commands a fault affects: by default, all of them.

    Attributes:
        after: Number of initial commands without the fault.
        every: Of the rest the first, and then every k-th.
        probability: The share of these, chosen by a seeded sequence of random numbers.
        seed: Equal seeds choose equally.
        times: Most occurrences.
    """

    after: int = field(default=0, metadata=kind(Number(0, 10**9)))
    every: int = field(default=1, metadata=kind(Number(1, 10**9)))
    probability: float = field(default=1.0, metadata=kind(Number(0.0, 1.0)))
    seed: int = field(default=0, metadata=kind(Number(0, 2**63 - 1)))
    times: int | None = field(default=None, metadata=kind(Number(1, 10**9)))


def _no_error(_: str) -> str:
    return f"no error of the protocol; one of: {', '.join(pb.ServerError.keys())}"


@dataclass(frozen=True)
class AnswerError(Part):
    """The action of a fault that answers a command with an error instead of processing it."""

    action = "error"

    error: str = field(
        default="UnknownError", metadata=kind(Choice(pb.ServerError.keys(), _no_error))
    )
    message: str = field(
        default="a fault that was set on command", metadata=kind(Text(MAX_TEXT, least=0))
    )


@dataclass(frozen=True)
class Delay(Part):
    """The action of a fault that delays the processing of a command."""

    action = "delay"

    delay_ms: int = field(metadata=kind(Number(1, MAX_DELAY_MS)))


@dataclass(frozen=True)
class Drop(Part):
    """The action of a fault that ignores a command and sends no answer."""

    action = "drop"


@dataclass(frozen=True)
class Disconnect(Part):
    """The action of a fault that closes the connection, before or after a command's processing."""

    action = "disconnect"

    at: str = field(default="before", metadata=kind(Choice(("before", "after"))))


@dataclass(frozen=True)
class StopReading(Part):
    """The action of a fault that stops reading from the client, for some time or until cleared."""

    action = "stopReading"

    for_ms: int | None = field(default=None, metadata=kind(Number(1, MAX_DELAY_MS)))


@dataclass(frozen=True)
class DrainSlowly(Part):
    """The action of a fault that from a command on reads a limited number of bytes per second."""

    action = "drain"

    bytes_per_second: int = field(metadata=kind(Number(1, 10**12)))


@dataclass(frozen=True)
class CorruptChecksum(Part):
    """The action of a fault that changes a bit of a message's checksum."""

    action = "corruptChecksum"


@dataclass(frozen=True)
class CloseProducer(Part):
    """The action of a fault that closes the command's producer or, without one, all producers."""

    action = "closeProducer"


@dataclass(frozen=True)
class CloseConsumer(Part):
    """The action of a fault that closes the command's consumer or, without one, all consumers."""

    action = "closeConsumer"


@dataclass(frozen=True)
class MoveTopic(Part):
    """The action of a fault that unloads the topic's bundle, so that another broker may own it.

    Attributes:
        to: The broker that shall own it: its service URL, or host and port of its web port.
    """

    action = "moveTopic"

    to: str | None = field(default=None, metadata=kind(Text(MAX_TEXT)))


Action: TypeAlias = (
    AnswerError
    | Delay
    | Drop
    | Disconnect
    | StopReading
    | DrainSlowly
    | CorruptChecksum
    | CloseProducer
    | CloseConsumer
    | MoveTopic
)
_ONLY_RECEIVED = (AnswerError, StopReading, DrainSlowly, CloseProducer, CloseConsumer, MoveTopic)


def _no_command(name: str) -> str:
    return f"{name[:50]!r} is no command of the protocol; LOOKUP is one"


_COMMANDS = Several(Choice(pb.BaseCommand.Type.keys(), _no_command), MAX_COMMANDS)


@dataclass(frozen=True, kw_only=True)
class Fault(Part):
    """An injected fault: which commands of which clients it affects, and its action.

    Attributes:
        on: The types of commands; empty: all.
        direction: The sender of the commands.
        where: Their clients and topics.
        when: The occurrences.
        do: The action.
    """

    on: tuple[str, ...] = field(default=(), metadata=kind(_COMMANDS))
    direction: Direction = field(default=Direction.RECEIVED, metadata=kind(Member(Direction)))
    where: Where = field(default=Where(), metadata=kind(Nested((Where,))))
    when: When = field(default=When(), metadata=kind(Nested((When,))))
    do: Action = field(metadata=kind(Nested(get_args(Action))))

    def check(self) -> None:
        """Raise an error if the fault's action does not suit its commands or direction."""
        if isinstance(self.do, CorruptChecksum) and not (
            self.on and WITH_CHECKSUM.issuperset(self.on)
        ):
            raise DocumentError('corruptChecksum is for messages: set "on" to SEND or MESSAGE')
        if self.direction is Direction.SENT and isinstance(self.do, _ONLY_RECEIVED):
            raise DocumentError(
                f'{self.do.action} is for commands of clients: drop "direction", or choose '
                "another action"
            )

    @property
    def kinds(self) -> frozenset[int] | None:
        """The affected command types as numbers of the protocol; None for all types."""
        return frozenset(pb.BaseCommand.Type.Value(name) for name in self.on) or None
