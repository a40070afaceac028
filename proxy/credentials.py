"""The credentials that the proxy shows to brokers, and the client for whom it speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.authentication.basic import AuthenticationBasic
from client.authentication.token import AuthenticationToken
from client.exceptions import InvalidConfiguration
from server.errors import StartError

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication
    from proxy.config import BrokerCredentials

_KEY = "brokerClientAuthenticationParameters"


@dataclass(frozen=True, slots=True)
class OriginalClient:
    """A client that the proxy has authenticated, as brokers are told of it.

    Attributes:
        role: Its role.
        method: The method of its credentials, where they are passed on.
        data: Its credentials, where they are passed on; never shown.
    """

    role: str
    method: str | None = None
    data: str | None = field(default=None, repr=False)


def broker_credentials(settings: BrokerCredentials | None) -> Authentication | None:
    """Return the proxy's own credentials; None if it has none.

    Raises:
        StartError: The parameters are none of their kind.
    """
    if settings is None:
        return None
    if settings.kind == "token":
        return AuthenticationToken(_token(settings.parameters))
    try:
        found = json.loads(settings.parameters)
        return AuthenticationBasic(found["userId"], found["password"])
    except (ValueError, KeyError, TypeError, InvalidConfiguration):
        raise StartError(
            f"{_KEY}: a user and a password are expected as a JSON object with userId and password"
        ) from None


def _token(parameters: str) -> str:
    """Return a token or its place: ``token:...``, ``file:///...`` or a JSON object."""
    if not parameters.lstrip().startswith("{"):
        return parameters
    try:
        return str(json.loads(parameters)["token"])
    except (ValueError, KeyError, TypeError):
        raise StartError(f"{_KEY}: a JSON object with a token is expected") from None
