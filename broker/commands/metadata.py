"""LOOKUP and PARTITIONED_METADATA: a topic's broker, and number of partitions."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.errors import TOO_MANY_LOOKUPS
from proto.commands import lookup_failed, partitions_failed, with_body
from proto.names import InvalidNameError, TopicName
from server.connection.permitted_requests import Request
from server.connection.request_errors import ErrorForm

if TYPE_CHECKING:
    from broker.cnx import ServerCnx

LOOKUP_ERRORS = ErrorForm(lookup_failed, TOO_MANY_LOOKUPS)
PARTITIONS_ERRORS = ErrorForm(partitions_failed, TOO_MANY_LOOKUPS)


def lookup(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a LOOKUP."""
    asked = with_body(command, "lookupTopic").lookupTopic
    cnx.requests.begin(Request(asked.request_id, LOOKUP_ERRORS), partial(_lookup, cnx, asked))


async def _lookup(cnx: ServerCnx, asked: pb.CommandLookupTopic) -> None:
    await _check(cnx, asked.topic, Asked.LOOKUP)
    response = await cnx.parts.lookup_handler.lookup(asked)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response))


def partitioned_metadata(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a PARTITIONED_METADATA."""
    asked = with_body(command, "partitionMetadata").partitionMetadata
    request = Request(asked.request_id, PARTITIONS_ERRORS, asked.topic)
    cnx.requests.begin(request, partial(_partitions, cnx, asked))


async def _partitions(cnx: ServerCnx, asked: pb.CommandPartitionedTopicMetadata) -> None:
    await _check(cnx, asked.topic, Asked.PARTITIONS)
    response = await cnx.parts.lookup_handler.partitions(asked)
    kind = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
    cnx.send(pb.BaseCommand(type=kind, partitionMetadataResponse=response))


async def _check(cnx: ServerCnx, topic: str, asked: Asked) -> None:
    """Check a client's permission for a topic; invalid names are refused later.

    Raises:
        RequestError: Not permitted.
    """
    if cnx.parts.authorization is None:
        return
    with suppress(InvalidNameError):
        name = TopicName.parse(topic)
        await cnx.parts.authorization.check(cnx.session, name, asked)
