"""The document of a fault, as posted, listed and stored.

Example::

    {"on": ["LOOKUP"], "where": {"namespace": "public/default"},
     "when": {"every": 2, "times": 3}, "do": {"action": "error", "error": "ServiceNotReady"}}
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_COMMANDS = 100
MAX_TEXT = 1_000
MAX_DELAY_MS = 3_600_000
_DOMAINS = ("persistent://", "non-persistent://")
_STARTS = sorted({domain[:end] for domain in _DOMAINS for end in range(len(domain))})
"""Possible texts before a ``*`` in a pattern that matches a topic's full name."""
WITH_CHECKSUM = frozenset({"SEND", "MESSAGE"})
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


def _fits(pattern: str) -> WithJsonSchema:
    """Return the JSON schema of a text accepted by the validators below."""
    return WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT, "pattern": pattern}
    )


def _one_of(names: Iterable[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": sorted(names)})


class Direction(Enum):
    """The sender of a fault's commands."""

    RECEIVED = "received"
    """Commands sent by clients."""
    SENT = "sent"
    """Commands sent by the server, or at a proxy by the brokers behind it."""


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Where(_Part):
    """Conditions on a command's client and topic, which must all match. ``*`` matches anything.

    Attributes:
        topic: Full name of the command's topic.
        namespace: Tenant and namespace of the topic, or of the topic list.
        client_version: The client's announced version in CONNECT.
        connection: The client's address, ``host:port``.
    """

    topic: Annotated[Text, _fits(rf"^({'|'.join(_DOMAINS)}|({'|'.join(_STARTS)})\*)")] | None = None
    namespace: Annotated[Text, _fits("[/*]")] | None = None
    client_version: Text | None = None
    connection: Annotated[Text, _fits("[:*]")] | None = None

    @field_validator("topic")
    @classmethod
    def _in_full(cls, topic: str | None) -> str | None:
        if topic is not None:
            first, star, _ = topic.partition("*")
            if not any(first.startswith(d) or (star and d.startswith(first)) for d in _DOMAINS):
                raise ValueError(
                    f"no full name of a topic fits {topic[:50]!r}: write it as "
                    "persistent://public/default/orders or */orders"
                )
        return topic

    @model_validator(mode="after")
    def _may_fit(self) -> Self:
        for noun, text, mark, example in (
            ("namespace", self.namespace, "/", "public/default"),
            ("address", self.connection, ":", "127.0.0.1:*"),
        ):
            if text is not None and not {mark, "*"}.intersection(text):
                raise ValueError(f"no {noun} fits {text[:50]!r}: write it as {example}")
        return self


class When(_Part):
    """The matching commands to which the fault applies; by default all.

    Attributes:
        after: Number of initial commands without the fault.
        every: Of the rest the first, and then every k-th.
        probability: The share of these, chosen by a seeded sequence of random numbers.
        seed: Equal seeds choose equally.
        times: Most occurrences.
    """

    after: int = Field(default=0, ge=0, le=10**9)
    every: int = Field(default=1, ge=1, le=10**9)
    probability: float = Field(default=1.0, ge=0.0, le=1.0)
    seed: int = Field(default=0, ge=0, lt=2**63)
    times: int | None = Field(default=None, ge=1, le=10**9)


class AnswerError(_Part):
    """Answer with an error, without handling the command."""

    action: Literal["error"]
    error: Annotated[str, _one_of(pb.ServerError.keys())] = "UnknownError"
    message: str = Field(default="a fault that was set on command", max_length=MAX_TEXT)

    @field_validator("error")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in pb.ServerError.keys():  # noqa: SIM118 - protobuf's enum is no mapping
            known = ", ".join(pb.ServerError.keys())
            raise ValueError(f"no error of the protocol; one of: {known}")
        return name


class Delay(_Part):
    """Handle the command later."""

    action: Literal["delay"]
    delay_ms: int = Field(ge=1, le=MAX_DELAY_MS)


class Drop(_Part):
    """Ignore the command."""

    action: Literal["drop"]


class Disconnect(_Part):
    """Close the connection, before the command is handled or after."""

    action: Literal["disconnect"]
    at: Literal["before", "after"] = "before"


class StopReading(_Part):
    """Stop reading from the client, until the fault is cleared or for some time."""

    action: Literal["stopReading"]
    for_ms: int | None = Field(default=None, ge=1, le=MAX_DELAY_MS)


class DrainSlowly(_Part):
    """Limit reading from the client to a number of bytes per second, from this command on."""

    action: Literal["drain"]
    bytes_per_second: int = Field(ge=1, le=10**12)


class CorruptChecksum(_Part):
    """Change a bit of the checksum of a message."""

    action: Literal["corruptChecksum"]


class CloseProducer(_Part):
    """Close the command's producer, or all of the connection's if it names none."""

    action: Literal["closeProducer"]


class CloseConsumer(_Part):
    """Close the command's consumer, or all of the connection's if it names none."""

    action: Literal["closeConsumer"]


class MoveTopic(_Part):
    """Release the topic's bundle, so that the next lookup finds its broker, here or elsewhere.

    Attributes:
        to: The broker that shall own it: its service URL, or host and port of its web port.
    """

    action: Literal["moveTopic"]
    to: Text | None = None


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


class Fault(_Part):
    """A fault.

    Attributes:
        on: The types of commands; empty: all.
        direction: The sender of the commands.
        where: Their clients and topics.
        when: The occurrences.
        do: The action.
    """

    on: tuple[Annotated[str, _one_of(pb.BaseCommand.Type.keys())], ...] = Field(
        default=(), max_length=MAX_COMMANDS
    )
    direction: Direction = Direction.RECEIVED
    where: Where = Where()
    when: When = When()
    do: Annotated[Action, Field(discriminator="action")]

    @field_validator("on")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in pb.BaseCommand.Type.keys():  # noqa: SIM118 - as above
                raise ValueError(f"{name[:50]!r} is no command of the protocol; LOOKUP is one")
        return names

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.do, CorruptChecksum) and not (
            self.on and WITH_CHECKSUM.issuperset(self.on)
        ):
            raise ValueError('corruptChecksum is for messages: set "on" to SEND or MESSAGE')
        if self.direction is Direction.SENT and isinstance(self.do, _ONLY_RECEIVED):
            raise ValueError(
                f'{self.do.action} is for commands of clients: drop "direction", or choose another '
                "action"
            )
        return self

    @property
    def kinds(self) -> frozenset[int] | None:
        """The types of commands as numbers; None: all."""
        return frozenset(pb.BaseCommand.Type.Value(name) for name in self.on) or None

    def as_json(self) -> dict[str, object]:
        """Return the document, without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
