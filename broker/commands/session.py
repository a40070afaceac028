"""CONNECT: the handshake of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from proto.commands import with_body
from proto.version import SERVER_VERSION

if TYPE_CHECKING:
    from broker.cnx import ServerCnx

PROTOCOL_VERSION = 21
"""Newest protocol version this broker speaks."""


def connect(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer CONNECT: the lower of both protocol versions, and what this broker can."""
    request = with_body(command, "connect").connect
    cnx.client_version = request.client_version
    if request.HasField("proxy_version"):
        # Many clients are behind it, and it is the proxy that is fair between them.
        cnx.stands_for_many()
        cnx.parts.memory.exempt_from_quota(cnx)
    cnx.state = ServerCnxState.CONNECTED
    cnx.parts.counters.create_success += 1
    config = cnx.parts.config
    connected = pb.CommandConnected(
        server_version=SERVER_VERSION,
        protocol_version=min(request.protocol_version, PROTOCOL_VERSION),
        max_message_size=config.max_message_size,
    )
    watchers = config.announces_topic_watchers
    flags = connected.feature_flags
    flags.supports_topic_watchers = watchers
    flags.supports_get_partitioned_metadata_without_auto_creation = True
    flags.supports_repl_dedup_by_lid_and_eid = True
    flags.supports_topic_watcher_reconcile = watchers
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))
