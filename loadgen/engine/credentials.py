"""The credentials of clients on the wire: in CONNECT, and when a server asks for fresh ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import PulsarException
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication


def show_credentials(connect: pb.CommandConnect, authentication: Authentication) -> None:
    """Put the credentials of this moment into CONNECT.

    Raises:
        UsageError: They cannot be read.
    """
    connect.auth_method_name = authentication.method_name
    connect.auth_data = _shown(authentication)
    connect.feature_flags.supports_auth_refresh = True


def auth_response(
    client_version: str, protocol_version: int, authentication: Authentication
) -> pb.BaseCommand:
    """Return AUTH_RESPONSE with the credentials of this moment.

    Raises:
        UsageError: They cannot be read.
    """
    response = pb.CommandAuthResponse(
        client_version=client_version, protocol_version=protocol_version
    )
    response.response.auth_method_name = authentication.method_name
    response.response.auth_data = _shown(authentication)
    return pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE, authResponse=response)


def _shown(authentication: Authentication) -> bytes:
    try:
        return authentication.auth_data()
    except PulsarException as error:
        raise UsageError(str(error)) from None
