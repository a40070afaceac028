"""The base of all credentials, and the unsupported kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.exceptions import OperationNotSupported

if TYPE_CHECKING:
    from collections.abc import Awaitable

METHOD_HEADER = "X-Pulsar-Auth-Method-Name"
"""HTTP header with the credentials' method (upstream: PULSAR_AUTH_METHOD_NAME)."""


class Authentication:
    """Base of credentials, requested at every CONNECT and every challenge.

    Satisfies client.connection.authentication.Credentials. The class itself stands for the official
    client's native plug-ins, and is refused.

    Raises:
        OperationNotSupported: A native plug-in was requested.
    """

    def __init__(self, dynamicLibPath: str, authParamsString: str) -> None:  # noqa: N803
        raise OperationNotSupported(
            f"this client loads no native plug-ins such as {dynamicLibPath!r:.80}: derive a class "
            "from Authentication that has method_name and auth_data()"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"  # the rest is secret

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method."""
        raise NotImplementedError(f"{type(self).__name__} does not say its method_name")

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the current credentials; a plain function runs in a thread.

        Raises:
            ErrorGettingAuthenticationData: The credentials are unreadable.
        """
        raise NotImplementedError(f"{type(self).__name__} does not have auth_data()")

    def http_headers(self) -> dict[str, str]:
        """Return HTTP headers with the current credentials.

        Raises:
            ErrorGettingAuthenticationData: The credentials are unreadable.
        """
        return {METHOD_HEADER: self.method_name}


class AuthenticationAthenz(Authentication):
    """Refused: tokens of Athenz.

    Raises:
        OperationNotSupported: Always.
    """

    def __init__(self, auth_params_string: str) -> None:
        raise OperationNotSupported(
            "this client does not ask Athenz for tokens: fetch them yourself and derive a class "
            "from Authentication whose method_name is 'athenz'"
        )


class AuthenticationOauth2(Authentication):
    """Refused: tokens of an OAuth 2.0 server.

    Raises:
        OperationNotSupported: Always.
    """

    def __init__(self, auth_params_string: str) -> None:
        raise OperationNotSupported(
            "this client does not ask an OAuth 2.0 server for tokens: fetch and renew them "
            "yourself, and give AuthenticationToken a function that returns the newest"
        )
