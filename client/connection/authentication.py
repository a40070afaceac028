"""The one thing a connection needs of an authentication: a method's name, and fresh credentials."""

from __future__ import annotations

from typing import Protocol


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
