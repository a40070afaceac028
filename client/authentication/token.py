"""Token credentials: a signed text with the client's identity."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from client.authentication.authentication import Authentication
from client.exceptions import ErrorGettingAuthenticationData, InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_FILE, _VARIABLE, _TOKEN = "file:", "env:", "token:"


class AuthenticationToken(Authentication):
    """A token, requested anew for every connection and every challenge.

    Args:
        token: The token; ``file:///path`` or ``env:NAME`` with the token; or a function returning
            the token, plain or a coroutine.

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
        """See Authentication."""
        return "token"

    def auth_data(self) -> bytes | Coroutine[object, object, bytes]:
        """See Authentication."""
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
        """See Authentication."""
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
    """Return the content of a ``file:`` or ``env:`` reference, else the text itself.

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
