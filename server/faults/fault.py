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
    """The sender of the commands affected by a fault."""

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
    """Return the kind of strings that contain ``mark`` or ``*``."""

    def check(text: str) -> None:
        if not {mark, "*"}.intersection(text):
            raise ValueError(f"no {noun} fits {text[:50]!r}: write it as {example}")

    return Text(MAX_TEXT, f"[{mark}*]", check)


_TOPIC = Text(MAX_TEXT, rf"^({'|'.join(_DOMAINS)}|({'|'.join(_STARTS)})\*)", _in_full)


@dataclass(frozen=True)
class Where(Part):
    """Conditions on a command's client and topic, which must all hold; ``*`` matches any text.

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
    """The part of the matching commands affected by a fault; by default all.

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
    """Answer with an error, without handling the command."""

    action = "error"

    error: str = field(
        default="UnknownError", metadata=kind(Choice(pb.ServerError.keys(), _no_error))
    )
    message: str = field(
        default="a fault that was set on command", metadata=kind(Text(MAX_TEXT, least=0))
    )


@dataclass(frozen=True)
class Delay(Part):
    """Handle the command only after a delay."""

    action = "delay"

    delay_ms: int = field(metadata=kind(Number(1, MAX_DELAY_MS)))


@dataclass(frozen=True)
class Drop(Part):
    """Ignore the command, and send no answer."""

    action = "drop"


@dataclass(frozen=True)
class Disconnect(Part):
    """Close the connection, before or after the command is handled."""

    action = "disconnect"

    at: str = field(default="before", metadata=kind(Choice(("before", "after"))))


@dataclass(frozen=True)
class StopReading(Part):
    """Stop reading from the client, until the fault is cleared or for a limited time."""

    action = "stopReading"

    for_ms: int | None = field(default=None, metadata=kind(Number(1, MAX_DELAY_MS)))


@dataclass(frozen=True)
class DrainSlowly(Part):
    """Limit reading from the client to a number of bytes per second, from this command on."""

    action = "drain"

    bytes_per_second: int = field(metadata=kind(Number(1, 10**12)))


@dataclass(frozen=True)
class CorruptChecksum(Part):
    """Change a bit of a message's checksum."""

    action = "corruptChecksum"


@dataclass(frozen=True)
class CloseProducer(Part):
    """Close the command's producer; without a producer, all producers of the connection."""

    action = "closeProducer"


@dataclass(frozen=True)
class CloseConsumer(Part):
    """Close the command's consumer; without a consumer, all consumers of the connection."""

    action = "closeConsumer"


@dataclass(frozen=True)
class MoveTopic(Part):
    """Give up ownership of the topic's bundle; the next lookup assigns the bundle to a broker.

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
    """An injected fault: the affected commands and clients, and the action.

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
        """Raise an error if the action does not suit the fault's commands or direction."""
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
        """The affected command types as protocol numbers; None for all types."""
        return frozenset(pb.BaseCommand.Type.Value(name) for name in self.on) or None
