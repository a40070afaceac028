"""Selection of the commands that a fault affects, by topic, namespace and client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from proto.names import InvalidNameError, TopicName

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from server.faults.fault import Where


class Client(Protocol):
    """An interface with the members of a client's connection by which faults select commands.

    Attributes:
        peer: The client's address.
        client_version: The version that the client announced; empty before CONNECT.
    """

    peer: str
    client_version: str

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the full name of a producer's topic; empty if unknown."""

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the full name of a consumer's topic; empty if unknown."""


class Selection:
    """Selects commands by the conditions in a fault's ``where``.

    A missing property, such as a topic, matches no condition.

    Attributes:
        needs_command: True if matching requires the parsed command.
        about_topics: True if it matches by topic or namespace.
    """

    def __init__(self, where: Where) -> None:
        self._topic = _pattern(where.topic)
        self._namespace = _pattern(where.namespace)
        self._version = _pattern(where.client_version)
        self._connection = _pattern(where.connection)
        self.about_topics = not (self._topic is self._namespace is None)
        self.needs_command = self.about_topics or self._version is not None

    def may_fit(self, client: Client) -> bool:
        """Return False if no command from this client, or to it, can match."""
        if self._connection is not None and not self._connection.fits(client.peer):
            return False
        version = client.client_version
        return self._version is None or not version or self._version.fits(version)

    def fits(self, client: Client, command: pb.BaseCommand) -> bool:
        """Return True if a command that the client sent or receives matches."""
        if self._version is not None:
            version = client.client_version or command.connect.client_version
            if not self._version.fits(version):
                return False
        if self._topic is self._namespace is None:
            return True
        topic = topic_of(client, command)
        if self._topic is not None and not (topic and self._topic.fits(topic)):
            return False
        if self._namespace is None:
            return True
        namespace = _namespace_of(topic, command)
        return bool(namespace) and self._namespace.fits(namespace)


class Pattern:
    """A text pattern in which ``*`` stands for any characters; matching takes linear time."""

    def __init__(self, text: str) -> None:
        self._first, *rest = text.split("*")
        self._exact = not rest
        self._last = rest.pop() if rest else ""
        self._between = [part for part in rest if part]

    def fits(self, text: str) -> bool:
        """Return True if the pattern matches the whole text."""
        if self._exact:
            return text == self._first
        at, end = len(self._first), len(text) - len(self._last)
        if at > end or not (text.startswith(self._first) and text.endswith(self._last)):
            return False
        for part in self._between:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


def _pattern(text: str | None) -> Pattern | None:
    return None if text is None else Pattern(text)


def topic_of(client: Client, command: pb.BaseCommand) -> str:
    """Return the full name of a command's topic; empty for a command without a topic."""
    body = body_of(command)
    if body is None:
        return ""
    fields = body.DESCRIPTOR.fields_by_name
    if "topic" in fields:
        return full_name(getattr(body, "topic"))  # noqa: B009 - not every body has one
    if "subscription" in fields and fields["subscription"].message_type is not None:
        asked = body.subscription  # type: ignore[attr-defined]
        one = next(iter(asked), None) if fields["subscription"].is_repeated else asked
        return "" if one is None else full_name(one.topic)
    if "producer_id" in fields:
        return client.topic_of_producer(body.producer_id)  # type: ignore[attr-defined]
    if "consumer_id" in fields:
        return client.topic_of_consumer(body.consumer_id)  # type: ignore[attr-defined]
    return ""


def body_of(command: pb.BaseCommand) -> Message | None:
    """Return the message inside a command that is specific to its type; None without one."""
    # In Pulsar's protocol a body's field number equals the number of its type.
    field = pb.BaseCommand.DESCRIPTOR.fields_by_number.get(command.type)
    return None if field is None else getattr(command, field.name)


def _namespace_of(topic: str, command: pb.BaseCommand) -> str:
    if topic:
        try:
            return str(TopicName.parse(topic).namespace)
        except InvalidNameError:
            return ""
    return str(getattr(body_of(command), "namespace", ""))


def full_name(text: object) -> str:
    """Return the full form of a topic name; an invalid name is returned unchanged."""
    try:
        return str(TopicName.parse(str(text)))
    except InvalidNameError:
        return str(text)
