"""Decoding of each value with the schema version that its producer used."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidMessage, server_response_error
from client.messages.message import ValueT
from client.patience import attachment_may_pass
from client.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.messages.message import Decoding, EntryHead, Message
    from client.pulsar_client import PulsarClient
    from client.schema.fields import Value

PATIENCE_SECONDS = 30.0
"""Timeout of fetching a schema version, which delays all later messages.

After a failure, messages of this version fail for the same time without a further request.
"""

MAX_VERSIONS = 100
"""Maximum number of stored schema versions of a topic; the least recently used is removed."""


class VersionedSchema(Schema[ValueT]):
    """A schema that decodes each value with the schema version that its producer used."""

    def decoding_of(self, info: pb.Schema) -> Decoding:
        """Return the decoder of values written with a version of the topic's schema.

        Raises:
            ValueError: The schema cannot decode the version.
        """
        raise NotImplementedError(
            f"{type(self).__name__} defines no way to read other versions of a schema"
        )

    def writer_schemas(self, cluster: PulsarClient, topic: str) -> TopicVersions:
        """Return an object that fetches the versions of a topic's schema."""
        return TopicVersions(self, cluster, topic)


class TopicVersions:
    """The versions of a topic's schema, each fetched when its first message arrives.

    Values of unavailable or unsupported versions are not guessed: ``Message.value`` raises.

    Args:
        schema: Schema that decodes the values.
        cluster: The client that fetches the schema versions.
        topic: Full name of the topic.
    """

    def __init__(self, schema: VersionedSchema[Any], cluster: PulsarClient, topic: str) -> None:
        self._schema = schema
        self._cluster = cluster
        self._topic = topic
        self._versions: OrderedDict[bytes, Decoding] = OrderedDict()
        self._unknown: dict[bytes, tuple[float, _Unknown]] = {}  # With expiry times.

    def known(self, entry: EntryHead) -> bool:
        """Give an entry the decoder for its schema version.

        Return False if the version must be fetched first.
        """
        version = entry.metadata.schema_version
        if not version:
            return True
        found = self._versions.get(version)
        if found is None:
            return False
        self._versions.move_to_end(version)
        entry.schema = found
        return True

    async def learn(self, entry: EntryHead) -> None:
        """Give an entry the decoder for its schema version, fetched from the broker if needed."""
        if self.known(entry):
            return
        version, clock = entry.metadata.schema_version, self._cluster.clock
        unknown = self._unknown.get(version)
        if unknown is not None and clock.now() < unknown[0]:
            entry.schema = unknown[1]
            return
        try:
            info = await self._cluster.patience.until(
                lambda: get_schema(self._cluster, self._topic, version),
                "the broker did not send the schema",
                PATIENCE_SECONDS,
                attachment_may_pass,
            )
            self._versions[version] = self._schema.decoding_of(info)
        except Exception as error:  # noqa: BLE001 - a schema may raise anything
            subject = f"{self._topic}: version {version.hex()} of the schema"
            entry.schema = reason = _Unknown(f"{subject}: {error}")
            if len(self._unknown) >= MAX_VERSIONS:
                self._unknown.clear()
            self._unknown[version] = clock.now() + PATIENCE_SECONDS, reason
            return
        if len(self._versions) > MAX_VERSIONS:
            self._versions.popitem(last=False)
        self.known(entry)


class _Unknown:
    """The decoder of messages whose schema version could not be fetched; it raises an error."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def decode_message(self, _: Message[Any]) -> NoReturn:
        raise InvalidMessage(f"{self._reason}: take the bytes by data(), or refuse the message")


async def get_schema(cluster: PulsarClient, topic: str, version: bytes) -> pb.Schema:
    """Fetch a version of a topic's schema from the broker.

    Args:
        cluster: The client.
        topic: Full name of the topic.
        version: The schema version as messages contain it; b"" for the newest.

    Raises:
        PulsarException: The broker lacks the version, or is unreachable.
    """

    def build(request_id: int) -> pb.BaseCommand:
        question = pb.CommandGetSchema(request_id=request_id, topic=topic)
        if version:
            question.schema_version = version
        return pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA, getSchema=question)

    cnx = await cluster.connection_of(topic)
    answer = (await cnx.request(build)).getSchemaResponse
    if answer.HasField("error_code"):
        raise server_response_error(answer.error_code, answer.error_message)
    return answer.schema


class AutoConsumeSchema(VersionedSchema[Any]):
    """A schema that decodes each message with its producer's schema.

    Only consumers and readers can use it. Avro and JSON values become dicts, String values become
    text, and numbers and booleans become Python's types; all other values stay bytes.
    """

    def __init__(self) -> None:
        super().__init__(None, None, None, "AUTO_CONSUME")

    def encode(self, value: Value) -> bytes:
        """Raise TypeError, because this schema only decodes.

        Raises:
            TypeError: Always.
        """
        raise TypeError("AutoConsumeSchema reads only: give a producer the topic's own schema")

    def decode(self, data: bytes) -> bytes:
        """Return the bytes unchanged."""
        return data

    def decoding_of(self, info: pb.Schema) -> Reading:
        """Return the decoder of values written with a version of the topic's schema.

        Raises:
            ValueError: An Avro definition is invalid.
        """
        if info.type == pb.Schema.Avro:
            from client.schema.avro_definition import AvroDefinition  # an extra's package

            return Reading(AvroDefinition(info.schema_data).read)
        return Reading(_READERS.get(info.type, bytes))


class Reading:
    """A decoder that reads a message's bytes with a function."""

    def __init__(self, read: Callable[[bytes], Value]) -> None:
        self._read = read

    def decode_message(self, message: Message[Any]) -> Value:
        """Return the value that a message's payload encodes."""
        return self._read(message.data())


def _number(layout: str, data: bytes) -> Value:
    try:
        return struct.unpack(layout, data)[0]
    except struct.error:
        raise ValueError(f"{data!r:.80} is no value of the topic's schema") from None


_READERS: dict[pb.Schema.Type.ValueType, Callable[[bytes], Value]] = {
    getattr(pb.Schema, "None"): bytes,
    pb.Schema.String: bytes.decode,
    pb.Schema.Json: json.loads,
    pb.Schema.Bool: partial(_number, "?"),
    pb.Schema.Int8: partial(_number, ">b"),
    pb.Schema.Int16: partial(_number, ">h"),
    pb.Schema.Int32: partial(_number, ">i"),
    pb.Schema.Int64: partial(_number, ">q"),
    pb.Schema.Float: partial(_number, ">f"),
    pb.Schema.Double: partial(_number, ">d"),
}
