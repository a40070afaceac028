"""Names and passwords, from a file as htpasswd writes it."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from server.authentication.errors import AuthenticationError
from server.authentication.passwords import PasswordFileError, is_password, read_passwords
from server.authentication.principal import Principal
from server.configuration.secret_sources import KeySourceError, read_source
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.authentication.providers import Certificate

MAX_PASSWORD_BYTES = 1024
"""A longer one is nobody's; a hash of a megabyte would hold the event loop."""
_NOBODYS = "$apr1$nobodys$"
_REFUSAL = "Unknown user or invalid password"


class BasicProvider:
    """Checks ``name:password``; the name is the role.

    Args:
        source: basicAuthConf.

    Attributes:
        method: ``basic``.
        name: See AuthenticationProvider.

    Raises:
        StartError: The file cannot be read or used.

    Source: upstream AuthenticationProviderBasic.
    """

    method = "basic"
    name = "AuthenticationProviderBasic"

    def __init__(self, source: str) -> None:
        try:
            self._hashes = read_passwords(read_source(source).decode("utf-8", "replace"))
        except (KeySourceError, PasswordFileError) as error:
            raise StartError(f"basicAuthConf: {error}") from None

    def __repr__(self) -> str:
        return f"<BasicProvider {len(self._hashes)} users>"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """See AuthenticationProvider."""
        parts = data.rstrip(b":").split(b":")  # as recorded: Java's split drops what is empty there
        if len(parts) != 2:
            raise AuthenticationError(
                "Basic authentication token should be user:password", "INVALID_AUTH_DATA"
            )
        name, password = parts
        role = name.decode("utf-8", "replace")
        hashed = self._hashes.get(role)
        if len(password) > MAX_PASSWORD_BYTES:
            raise AuthenticationError(_REFUSAL, "INVALID_AUTH_DATA")
        if hashed is None:
            # As long as for a wrong password: the time would say which names there are.
            is_password(password, next(iter(self._hashes.values()), _NOBODYS))
            raise AuthenticationError(_REFUSAL, "INVALID_AUTH_DATA")
        if not is_password(password, hashed):
            raise AuthenticationError(_REFUSAL, "INVALID_TOKEN")
        return Principal(role, self.method)

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """See AuthenticationProvider."""
        scheme, _, encoded = headers.get("Authorization", "").partition(" ")
        if not scheme.upper().startswith("BASIC"):
            raise AuthenticationError(
                'Authentication token has to be started with "Basic "', "INVALID_HEADER"
            )
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise AuthenticationError("Base64 decoding failure", "INVALID_HEADER") from None
