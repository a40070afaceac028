"""Requests of clients that this broker refuses by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from proto.commands import error_command
from proto.parsing.command_bounds import type_name
from proto.parsing.unparsed import request_id_in
from server.connection.command_table import close_for_illegal

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from proto.frames import Frame

Type = pb.BaseCommand
NOT_SERVED = (
    Type.GET_SCHEMA,
    Type.GET_OR_CREATE_SCHEMA,
    Type.NEW_TXN,
    Type.TC_CLIENT_CONNECT_REQUEST,
)
"""Requests that this version answers with an error instead of closing."""


def refuse(cnx: ServerCnx, kind: int, frame: Frame) -> None:
    """Answer a request this broker does not serve, unparsed; close for anything else.

    Raises:
        RemoteProtocolError: The connection closes.
    """
    request_id = None
    if cnx.state is ServerCnxState.CONNECTED and kind in NOT_SERVED:
        request_id = request_id_in(kind, frame.command_bytes())
    if request_id is None:
        close_for_illegal(cnx, kind, frame)
    else:
        name = type_name(kind)
        text = f"{name} is not served by this version of Floodgate, which only lists topics"
        cnx.send(error_command(request_id, pb.NotAllowedError, text))
