"""Credentials of name and password."""

from __future__ import annotations

import base64
import json

from client.authentication.authentication import Authentication
from client.exceptions import InvalidConfiguration


class AuthenticationBasic(Authentication):
    """A name and a password, sent as ``name:password``; only TLS keeps them secret in transit.

    Args:
        username: The name.
        password: The password.
        method: The name of the method at the server.
        auth_params_string: All three as a JSON object, overriding the other arguments.

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
        """See Authentication."""
        return self._method

    def auth_data(self) -> bytes:
        """See Authentication."""
        return self._data

    def http_headers(self) -> dict[str, str]:
        """See Authentication."""
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
