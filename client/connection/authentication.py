"""The one thing a connection needs of an authentication: a method's name, and fresh credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Credentials(Protocol):
    """Credentials of one method, asked for at every CONNECT and every challenge."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method: ``token``, ``tls``, ``basic``."""

    def auth_data(self) -> bytes:
        """Return the credentials of this moment.

        Raises:
            ErrorGettingAuthenticationData: They cannot be read.
        """


class PassedOnCredentials(Protocol):
    """The credentials of a client behind a proxy, which the proxy passes on."""

    @property
    def method_name(self) -> str:
        """Pulsar's name of the method."""

    def auth_data(self) -> bytes:
        """Return those that the client has shown last."""

    def give_valid(self, take: Callable[[bytes], object]) -> None:
        """Have them taken: at once, or when the client has shown fresh ones; maybe never."""
