"""Credential classes with the official client's names; unsupported ones raise an error."""

from __future__ import annotations

import base64
import inspect
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from client.exceptions import (
    ErrorGettingAuthenticationData,
    InvalidConfiguration,
    OperationNotSupported,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

METHOD_HEADER = "X-Pulsar-Auth-Method-Name"
"""HTTP header that names the authentication method (upstream: PULSAR_AUTH_METHOD_NAME)."""


class Authentication:
    """Base class of credentials, which are read at every CONNECT and every challenge.

    Satisfies client.connection.connect_options.Credentials. An instance of the class itself would
    be a native plug-in of the official client, and is refused.

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
        """The name that Pulsar's servers use for this authentication method."""
        raise NotImplementedError(f"{type(self).__name__} does not define its method_name")

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the current credentials.

        A plain function is called in a thread, a coroutine on the event loop.

        Raises:
            ErrorGettingAuthenticationData: The credentials are unreadable.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define auth_data()")

    def http_headers(self) -> dict[str, str]:
        """Return HTTP headers that carry the current credentials.

        Raises:
            ErrorGettingAuthenticationData: The credentials are unreadable.
        """
        return {METHOD_HEADER: self.method_name}


class AuthenticationAthenz(Authentication):
    """Unsupported: the official client's class for tokens issued by Athenz.

    Raises:
        OperationNotSupported: Always.
    """

    def __init__(self, auth_params_string: str) -> None:
        raise OperationNotSupported(
            "this client does not ask Athenz for tokens: fetch them yourself and derive a class "
            "from Authentication whose method_name is 'athenz'"
        )


class AuthenticationOauth2(Authentication):
    """Unsupported: the official client's class for tokens issued by an OAuth 2.0 server.

    Raises:
        OperationNotSupported: Always.
    """

    def __init__(self, auth_params_string: str) -> None:
        raise OperationNotSupported(
            "this client does not ask an OAuth 2.0 server for tokens: fetch and renew them "
            "yourself, and give AuthenticationToken a function that returns the newest"
        )


class AuthenticationBasic(Authentication):
    """Credentials with a user name and a password, sent as ``name:password``.

    Only TLS keeps them secret in transit.

    Args:
        username: The user name.
        password: The password.
        method: The name that the server uses for the authentication method.
        auth_params_string: User name, password and method as a JSON object, which overrides the
            other arguments.

    Raises:
        InvalidConfiguration: A name or password is missing, or the JSON is invalid.
    """

    def __init__(
        self,
        username: str | None = None,
        password: str | None = None,
        method: str = "basic",
        auth_params_string: str | None = None,
    ) -> None:
        found: dict[str, object] = {"username": username, "password": password, "method": method}
        if auth_params_string is not None:
            found = {"method": "basic", **_object(auth_params_string)}
        for name, value in found.items():
            if not isinstance(value, str):
                raise InvalidConfiguration(f"{name} is a str, not {type(value).__name__}")
        if "username" not in found or "password" not in found:
            raise InvalidConfiguration(
                "auth_params_string lacks a username or a password: give both"
            )
        self._data = f"{found['username']}:{found['password']}".encode()
        self._method = str(found["method"])

    @property
    def method_name(self) -> str:
        """The name that the server uses for this authentication method."""
        return self._method

    def auth_data(self) -> bytes:
        """Return the user name and password as ``name:password``."""
        return self._data

    def http_headers(self) -> dict[str, str]:
        """Return HTTP headers that carry the user name and password."""
        shown = base64.b64encode(self._data).decode()
        return {**super().http_headers(), "Authorization": f"Basic {shown}"}


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidConfiguration(
            'auth_params_string is a JSON object such as {"username": "me", "password": "secret"}'
        )
    return found


_FILE, _VARIABLE, _TOKEN = "file:", "env:", "token:"


class AuthenticationToken(Authentication):
    """Credentials with a token, which is read again for every connection and every challenge.

    Args:
        token: The token, or ``file:///path`` or ``env:NAME`` of the token, or a function or
            coroutine function that returns the token.

    Raises:
        InvalidConfiguration: The argument is neither a text nor a function.
    """

    def __init__(self, token: str | Callable[[], str | Awaitable[str]]) -> None:
        if not isinstance(token, str) and not callable(token):
            raise InvalidConfiguration(
                f"token is a str or a function that returns one, not {type(token).__name__}"
            )
        self._token = token

    @property
    def method_name(self) -> str:
        """The name that Pulsar's servers use for this authentication method."""
        return "token"

    def auth_data(self) -> bytes | Coroutine[object, object, bytes]:
        """Return the current token, or a coroutine that returns it."""
        if isinstance(self._token, str):
            return read_named(self._token).encode()
        try:
            token = self._token()
        except Exception as error:
            raise ErrorGettingAuthenticationData(f"the token's function failed: {error}") from error
        if inspect.isawaitable(token):
            return _awaited(token)
        return _encoded(token)

    def http_headers(self) -> dict[str, str]:
        """Return HTTP headers that carry the current token."""
        token = self.auth_data()
        if not isinstance(token, bytes):
            token.close()
            raise ErrorGettingAuthenticationData(
                "the token's function is a coroutine: over HTTP give a plain function"
            )
        return {**super().http_headers(), "Authorization": f"Bearer {token.decode()}"}


async def _awaited(token: Awaitable[str]) -> bytes:
    try:
        return _encoded(await token)
    except Exception as error:
        raise ErrorGettingAuthenticationData(f"the token's function failed: {error}") from error


def _encoded(token: object) -> bytes:
    if not isinstance(token, str):
        raise ErrorGettingAuthenticationData(
            f"the token's function returned {type(token).__name__}, not a str"
        )
    return token.encode()


def read_named(token: str) -> str:
    """Return the content of a ``file:`` or ``env:`` reference; return any other text unchanged.

    Raises:
        ErrorGettingAuthenticationData: The file or variable is missing.
    """
    if token.startswith(_FILE):
        path = unquote(urlsplit(token).path)
        try:
            return Path(path).read_text().strip()
        except (OSError, ValueError) as error:
            raise ErrorGettingAuthenticationData(
                f"the token's file {path!r:.200} cannot be read: {error}"
            ) from error
    if token.startswith(_VARIABLE):
        name = token.removeprefix(_VARIABLE)
        if name not in os.environ:
            raise ErrorGettingAuthenticationData(
                f"there is no environment variable {name!r:.80} with a token"
            )
        return os.environ[name]
    return token.removeprefix(_TOKEN)
