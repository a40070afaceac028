"""A connection's view of authentication: a method's name, and fresh credentials."""

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
    """Credentials, requested at every CONNECT and every challenge."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method: ``token``, ``tls``, ``basic``."""

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the current credentials, or an awaitable."""


async def current_auth_data(credentials: Credentials, clock: Clock, seconds: float) -> bytes:
    """Return the current credentials.

    A plain function runs in a thread: reading files or calling a server may block.

    Args:
        credentials: The program's own, possibly arbitrary code.
        clock: The source of time.
        seconds: The timeout.

    Raises:
        ErrorGettingAuthenticationData: The credentials are unavailable.
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
    """A client's credentials, passed on by a proxy."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method."""

    def auth_data(self) -> bytes:
        """Return the client's last credentials."""

    def give_valid(self, take: Callable[[bytes], object]) -> None:
        """Pass valid credentials to ``take``: now, after the client's refresh, or never."""
