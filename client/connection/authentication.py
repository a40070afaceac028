"""The one thing a connection needs of an authentication: a method's name, and fresh credentials."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Protocol

from client.exceptions import ErrorGettingAuthenticationData, PulsarException
from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limiter.clock import Clock


class Credentials(Protocol):
    """Credentials of one method, asked for at every CONNECT and every challenge."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method: ``token``, ``tls``, ``basic``."""

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the credentials of this moment, or what they can be awaited from."""


async def current_auth_data(credentials: Credentials, clock: Clock, seconds: float) -> bytes:
    """Return the credentials of this moment.

    Those that are not awaited are asked for on a thread: they may read files, or ask a server.

    Args:
        credentials: A program's, so that they may do anything.
        clock: Where time comes from.
        seconds: How long they may take.

    Raises:
        ErrorGettingAuthenticationData: They cannot be had.
    """
    who = f"the credentials of {type(credentials).__name__}"
    ask = credentials.auth_data
    try:
        async with deadline(clock, seconds):
            awaited = inspect.iscoroutinefunction(ask)
            given: object = ask() if awaited else await asyncio.to_thread(ask)
            if inspect.isawaitable(given):
                given = await given
            named: object = credentials.method_name
    except PulsarException:
        raise
    except TimeoutError as error:
        raise ErrorGettingAuthenticationData(f"{who} did not come in {seconds:g} s") from error
    except Exception as error:
        raise ErrorGettingAuthenticationData(f"{who} failed: {error!r:.200}") from error
    if not isinstance(given, bytes) or not isinstance(named, str):
        raise ErrorGettingAuthenticationData(
            f"{who} are bytes and a method's name, not {type(given).__name__} and {named!r:.40}"
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
