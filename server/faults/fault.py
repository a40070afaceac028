"""The document of a fault: as it is posted, listed and kept.

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
"""The texts that a ``*`` may stand behind so that a topic's full name can fit."""
WITH_CHECKSUM = frozenset({"SEND", "MESSAGE"})
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


def _fits(pattern: str) -> WithJsonSchema:
    """Describe a text that the validators below let through."""
    return WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT, "pattern": pattern}
    )


def _one_of(names: Iterable[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": sorted(names)})


class Direction(Enum):
    """The side that says the commands a fault is about."""

    RECEIVED = "received"
    """Clients."""
    SENT = "sent"
    """The server; at a proxy the brokers behind it."""


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Where(_Part):
    """Whose commands: all that is given must fit. ``*`` stands for anything in each of them.

    Attributes:
        topic: Full name of the topic that the command is about.
        namespace: Tenant and namespace of that topic, or of the listing.
        client_version: The client, as it calls itself in CONNECT.
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
    """Which of the commands that fit: all without any of it.

    Attributes:
        after: The first that are let through.
        every: Of those that follow the first, and then every k-th.
        probability: Of those the share that a seeded sequence of random numbers chooses.
        seed: The same seed chooses the same.
        times: How often at most.
    """

    after: int = Field(default=0, ge=0, le=10**9)
    every: int = Field(default=1, ge=1, le=10**9)
    probability: float = Field(default=1.0, ge=0.0, le=1.0)
    seed: int = Field(default=0, ge=0, lt=2**63)
    times: int | None = Field(default=None, ge=1, le=10**9)


class AnswerError(_Part):
    """Answer with an error, and do nothing."""

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
    """Do as if the command had not come."""

    action: Literal["drop"]


class Disconnect(_Part):
    """End the connection, before the command is handled or after."""

    action: Literal["disconnect"]
    at: Literal["before", "after"] = "before"


class StopReading(_Part):
    """Read no more from the client, until the fault is cleared or some time has passed."""

    action: Literal["stopReading"]
    for_ms: int | None = Field(default=None, ge=1, le=MAX_DELAY_MS)


class DrainSlowly(_Part):
    """Read so many bytes a second of the client, from this command on."""

    action: Literal["drain"]
    bytes_per_second: int = Field(ge=1, le=10**12)


class CorruptChecksum(_Part):
    """Change a bit of the checksum of a message."""

    action: Literal["corruptChecksum"]


class CloseProducer(_Part):
    """Close the producer of the command, or all of the connection where it names none."""

    action: Literal["closeProducer"]


class CloseConsumer(_Part):
    """Close the consumer of the command, or all of the connection where it names none."""

    action: Literal["closeConsumer"]


class MoveTopic(_Part):
    """Let go of the topic's bundle: the next lookup finds its broker, here or elsewhere.

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
        direction: Who says them.
        where: Of whom.
        when: Which of them.
        do: What is done.
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
                f'{self.do.action} is for what clients say: remove "direction", or choose another '
                "action"
            )
        return self

    @property
    def kinds(self) -> frozenset[int] | None:
        """The types of commands as numbers; None: all."""
        return frozenset(pb.BaseCommand.Type.Value(name) for name in self.on) or None

    def as_json(self) -> dict[str, object]:
        """Return the document, without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
