"""Handlers of commands about topics' schemas: GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.commands.discovery import check
from broker.errors import TOO_MANY_LOOKUPS
from broker.messages.topic import PersistentTopic
from broker.schemas.registry import schema_name
from broker.schemas.schema import as_sent, version_bytes, version_of_bytes
from broker.stores.changes import StoreError
from proto.commands import (
    check_keys,
    get_or_create_schema_failed,
    get_schema_failed,
    with_body,
)
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, TopicName
from server.connection.permitted_requests import Request
from server.connection.request_errors import ErrorForm, RequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from broker.messages.topic import Topic

Type = pb.BaseCommand
GET_ERRORS = ErrorForm(get_schema_failed, TOO_MANY_LOOKUPS)
GET_OR_CREATE_ERRORS = ErrorForm(get_or_create_schema_failed, TOO_MANY_LOOKUPS)


def get_schema(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that answers a GET_SCHEMA with a topic's schema.

    The size of the answer is unknown until the schema is read.

    Raises:
        RemoteProtocolError: The version is too short, and the profile is pulsar; the connection
            closes.
    """
    asked = with_body(command, "getSchema").getSchema
    request = Request(asked.request_id, GET_ERRORS, asked.topic)
    try:
        version = _version(asked)
    except RequestError as error:
        if not cnx.parts.schemas.rules.refuses_by_name and asked.schema_version:
            raise RemoteProtocolError(error.message) from None
        cnx.requests.refuse(request, error)
        return
    cnx.requests.begin(request, partial(_get_schema, cnx, asked, version), expected_bytes=None)


def _version(asked: pb.CommandGetSchema) -> int | None:
    """Return the requested version of a schema, or None for the newest.

    Raises:
        RequestError: The version has fewer than 8 bytes.
    """
    if not asked.HasField("schema_version"):
        return None
    if not asked.schema_version:
        raise RequestError(pb.IncompatibleSchema, "Empty schema version")
    return version_of_bytes(asked.schema_version)


async def _get_schema(cnx: ServerCnx, asked: pb.CommandGetSchema, version: int | None) -> None:
    try:
        topic = TopicName.parse(asked.topic)
        await check(cnx, topic, Asked.GET_SCHEMA)
        found = await cnx.parts.schemas.asked_for(topic, version)
    except InvalidNameError as error:
        raise RequestError(pb.InvalidTopicName, str(error)) from None
    except StoreError as error:
        raise RequestError(pb.MetadataError, str(error)) from None
    if found is None:
        text = f"Topic not found or no-schema {asked.topic}"
        raise RequestError(pb.TopicNotFound, text)
    response = pb.CommandGetSchemaResponse(
        request_id=asked.request_id,
        schema=as_sent(schema_name(topic), found),
        schema_version=version_bytes(found.version),
    )
    cnx.send(Type(type=Type.GET_SCHEMA_RESPONSE, getSchemaResponse=response))


def get_or_create_schema(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that stores a topic's schema if it is new, and answers with the version.

    Raises:
        RemoteProtocolError: The schema's properties repeat a key, or the topic's name is invalid
            and the profile is pulsar; the connection closes.
    """
    asked = with_body(command, "getOrCreateSchema").getOrCreateSchema
    check_keys(asked.schema.properties)
    request = Request(asked.request_id, GET_OR_CREATE_ERRORS, asked.topic)
    try:
        topic = TopicName.parse(asked.topic)
    except InvalidNameError as error:
        if not cnx.parts.schemas.rules.refuses_by_name:
            raise RemoteProtocolError(str(error)) from None
        cnx.requests.refuse(request, RequestError(pb.InvalidTopicName, str(error)))
        return
    cnx.requests.begin(request, partial(_get_or_create, cnx, asked, topic))


async def _get_or_create(
    cnx: ServerCnx, asked: pb.CommandGetOrCreateSchema, name: TopicName
) -> None:
    await check(cnx, name, Asked.MAKE_SCHEMA)
    try:
        topic = await cnx.parts.loaded_topics.get(name, create=False)
    except RequestError:
        raise RequestError(pb.TopicNotFound, f"Topic not found {asked.topic}") from None
    version = await cnx.parts.schemas.for_request(name, asked.schema, topic.policies)
    response = pb.CommandGetOrCreateSchemaResponse(
        request_id=asked.request_id, schema_version=version
    )
    kind = Type.GET_OR_CREATE_SCHEMA_RESPONSE
    cnx.send(Type(type=kind, getOrCreateSchemaResponse=response))


async def take_schema(cnx: ServerCnx, topic: Topic, asked: pb.CommandSubscribe) -> None:
    """Check the schema in a SUBSCRIBE; an unused topic without a schema adopts it.

    Raises:
        RequestError: The schema is refused.
    """
    if asked.HasField("schema"):
        active = _is_active(topic)
        schemas, policies = cnx.parts.schemas, topic.policies
        await schemas.for_consumer(topic.name, asked.schema, policies, active=active)


def _is_active(topic: Topic) -> bool:
    """Return True if a topic has producers, messages, or consumers with a schema."""
    if len(topic.producers) or (isinstance(topic, PersistentTopic) and topic.ledger.size_bytes):
        return True
    return any(
        not consumer.options.takes_any_schema
        for subscription in topic.subscriptions
        for consumer in subscription.consumers
    )
