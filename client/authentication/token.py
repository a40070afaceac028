"""Tokens: a text that says who the client is, signed by somebody the server trusts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from client.authentication.authentication import Authentication
from client.exceptions import ErrorGettingAuthenticationData, InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE, _VARIABLE, _TOKEN = "file:", "env:", "token:"


class AuthenticationToken(Authentication):
    """A token, which is asked for anew at every connection and every challenge.

    Args:
        token: The token; ``file:///path`` of a file or ``env:NAME`` of a variable that holds it; or
            a function that returns it.

    Raises:
        InvalidConfiguration: It is neither a text nor a function.
    """

    def __init__(self, token: str | Callable[[], str]) -> None:
        if not isinstance(token, str) and not callable(token):
            raise InvalidConfiguration(
                f"token is a str or a function that returns one, not {type(token).__name__}"
            )
        self._token = token

    @property
    def method_name(self) -> str:
        """See Authentication."""
        return "token"

    def auth_data(self) -> bytes:
        """See Authentication."""
        token: object = self._token if isinstance(self._token, str) else self._supplied()
        if not isinstance(token, str):
            raise ErrorGettingAuthenticationData(
                f"the token's function returned {type(token).__name__}, not a str"
            )
        return (read_named(token) if token is self._token else token).encode()

    def http_headers(self) -> dict[str, str]:
        """See Authentication."""
        return {**super().http_headers(), "Authorization": f"Bearer {self.auth_data().decode()}"}

    def _supplied(self) -> object:
        if isinstance(self._token, str):
            return self._token
        try:
            return self._token()
        except Exception as error:
            raise ErrorGettingAuthenticationData(f"the token's function failed: {error}") from error


def read_named(token: str) -> str:
    """Return a secret: what a ``file:`` or an ``env:`` names, else the text itself.

    Raises:
        ErrorGettingAuthenticationData: There is none.
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
