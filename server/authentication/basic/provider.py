"""Authentication by names and passwords from a file in htpasswd's format."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from secrets import token_bytes
from typing import TYPE_CHECKING

from limiter.clock import LoopClock
from server.authentication.basic.guesses import Guesses
from server.authentication.basic.passwords import PasswordFileError, is_password, read_passwords
from server.authentication.errors import AuthenticationError
from server.authentication.principal import Principal
from server.configuration.secret_sources import KeySourceError, read_source
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limiter.clock import Clock
    from server.authentication.providers import Certificate

MAX_PASSWORD_BYTES = 255
"""Most bytes of a password in htpasswd; a longer password is refused without hashing."""
MOST_WRONG = 1_000
"""Wrong passwords remembered between ``prepare`` and ``authenticate``."""
_NOBODYS = "$apr1$nobodys$"
_REFUSAL = "Unknown user or invalid password"


class BasicProvider:
    """Checks ``name:password``; the name is the role.

    A hash takes milliseconds: ``prepare`` computes it on a thread, once for each name, and
    ``authenticate`` then returns the result immediately.

    Args:
        source: basicAuthConf.
        clock: The source of time.

    Attributes:
        method: ``basic``.
        name: See AuthenticationProvider.

    Raises:
        StartError: The file cannot be read or used.

    Source: upstream AuthenticationProviderBasic.
    """

    method = "basic"
    name = "AuthenticationProviderBasic"

    def __init__(self, source: str, clock: Clock | None = None) -> None:
        self._key = token_bytes(32)
        self._right: dict[str, bytes] = {}  # At most one per name.
        self._wrong: dict[bytes, None] = {}
        self._guesses = Guesses(clock or LoopClock())
        self._one_at_a_time = asyncio.Semaphore()
        try:
            self._hashes = read_passwords(read_source(source).decode("utf-8", "replace"))
        except (KeySourceError, PasswordFileError) as error:
            raise StartError(f"basicAuthConf: {error}") from None

    def __repr__(self) -> str:
        return f"<BasicProvider {len(self._hashes)} users>"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """See AuthenticationProvider; unprepared credentials are hashed here."""
        role, password = _parts(data)
        if not self._is_known(role, password):
            known, digest = role in self._hashes, self._digest(role, password)
            if digest not in self._wrong and self._hashed(role, password) and known:
                self._right[role] = digest
            else:
                self._wrong.pop(digest, None)
                code = "INVALID_TOKEN" if known else "INVALID_AUTH_DATA"
                raise AuthenticationError(_REFUSAL, code)
        return Principal(role, self.method)

    def takes_time(self, data: bytes) -> bool:
        """Return True if ``prepare`` would hash."""
        try:
            return not self._is_known(*_parts(data))
        except AuthenticationError:
            return False

    async def prepare(self, data: bytes, address: str) -> None:
        """Check credentials before ``authenticate``, without blocking the event loop.

        Args:
            data: The credentials.
            address: The address whose failures are bounded.
        """
        if not self.takes_time(data):
            return
        role, password = _parts(data)
        digest = self._digest(role, password)
        guess = self._guesses.begin(address, role if role in self._hashes else None)
        is_right = False
        if guess.may_be_hashed:
            async with self._one_at_a_time:
                is_right = await asyncio.to_thread(self._hashed, role, password)
        if is_right and role in self._hashes:
            guess.was_right()
            self._right[role] = digest
            return
        await guess.was_wrong()
        self._wrong[digest] = None
        if len(self._wrong) > MOST_WRONG:
            del self._wrong[next(iter(self._wrong))]

    def _hashed(self, role: str, password: bytes) -> bool:
        """Return True if the password is the name's; takes as long for an unknown name.

        Otherwise the time would reveal the existing names.
        """
        return is_password(
            password, self._hashes.get(role) or next(iter(self._hashes.values()), _NOBODYS)
        )

    def _is_known(self, role: str, password: bytes) -> bool:
        known = self._right.get(role)
        return known is not None and hmac.compare_digest(known, self._digest(role, password))

    def _digest(self, role: str, password: bytes) -> bytes:
        return hmac.digest(self._key, role.encode() + b":" + password, "sha256")

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


def _parts(data: bytes) -> tuple[str, bytes]:
    """Return name and password.

    Raises:
        AuthenticationError: Malformed, or too long.
    """
    parts = data.rstrip(b":").split(b":", 2)  # as recorded: Java's split drops empty ends
    if len(parts) != 2:
        raise AuthenticationError(
            "Basic authentication token should be user:password", "INVALID_AUTH_DATA"
        )
    name, password = parts
    if len(password) > MAX_PASSWORD_BYTES:
        raise AuthenticationError(_REFUSAL, "INVALID_AUTH_DATA")
    return name.decode("utf-8", "replace"), password
