"""LOOKUP and PARTITIONED_METADATA: where a topic is served, and how many partitions it has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import TOO_MANY_LOOKUPS
from proto.commands import lookup_failed, partitions_failed, with_body
from server.connection.permitted_requests import Request
from server.connection.request_errors import ErrorForm

if TYPE_CHECKING:
    from broker.cnx import ServerCnx

LOOKUP_ERRORS = ErrorForm(lookup_failed, TOO_MANY_LOOKUPS)
PARTITIONS_ERRORS = ErrorForm(partitions_failed, TOO_MANY_LOOKUPS)


def lookup(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a LOOKUP."""
    asked = with_body(command, "lookupTopic").lookupTopic
    cnx.requests.start(Request(asked.request_id, LOOKUP_ERRORS), partial(_lookup, cnx, asked))


async def _lookup(cnx: ServerCnx, asked: pb.CommandLookupTopic) -> None:
    response = await cnx.parts.lookup_handler.lookup(asked)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response))


def partitioned_metadata(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a PARTITIONED_METADATA."""
    asked = with_body(command, "partitionMetadata").partitionMetadata
    request = Request(asked.request_id, PARTITIONS_ERRORS, asked.topic)
    cnx.requests.start(request, partial(_partitions, cnx, asked))


async def _partitions(cnx: ServerCnx, asked: pb.CommandPartitionedTopicMetadata) -> None:
    response = await cnx.parts.lookup_handler.partitions(asked)
    kind = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
    cnx.send(pb.BaseCommand(type=kind, partitionMetadataResponse=response))
