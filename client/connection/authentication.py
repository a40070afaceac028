"""The one thing a connection needs of an authentication: a method's name, and fresh credentials."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Protocol

from client.exceptions import ErrorGettingAuthenticationData, PulsarException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Credentials(Protocol):
    """Credentials of one method, asked for at every CONNECT and every challenge."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method: ``token``, ``tls``, ``basic``."""

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the credentials of this moment, or what they can be awaited from."""


async def current_auth_data(credentials: Credentials) -> bytes:
    """Return the credentials of this moment.

    Those that are not awaited are asked for on a thread: they may read files, or ask a server.

    Raises:
        ErrorGettingAuthenticationData: They cannot be had.
    """
    ask = credentials.auth_data
    try:
        given: object = ask() if inspect.iscoroutinefunction(ask) else await asyncio.to_thread(ask)
        if inspect.isawaitable(given):
            given = await given
    except PulsarException:
        raise
    except Exception as error:
        raise ErrorGettingAuthenticationData(
            f"the credentials of method {credentials.method_name} failed: {error!r:.200}"
        ) from error
    if not isinstance(given, bytes):
        raise ErrorGettingAuthenticationData(
            f"the credentials of method {credentials.method_name} are bytes, not "
            f"{type(given).__name__}"
        )
    return given


class PassedOnCredentials(Protocol):
    """The credentials of a client behind a proxy, which the proxy passes on."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method."""

    def auth_data(self) -> bytes:
        """Return those that the client has shown last."""

    def give_valid(self, take: Callable[[bytes], object]) -> None:
        """Have them taken: at once, or when the client has shown fresh ones; maybe never."""
