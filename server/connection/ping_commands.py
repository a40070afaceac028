"""Handlers of PING and PONG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.commands import with_body

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from server.connection.served_connection import ServedConnection


def ping(cnx: ServedConnection, command: pb.BaseCommand) -> None:
    """Answer PING."""
    with_body(command, "ping")
    cnx.answer_ping()


def pong(_: ServedConnection, command: pb.BaseCommand) -> None:
    """Take a PONG: that the peer lives was clear when its frame came."""
    with_body(command, "pong")
