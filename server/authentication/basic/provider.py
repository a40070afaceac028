"""Authentication by user names and passwords from a file in htpasswd's format."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from secrets import token_bytes
from typing import TYPE_CHECKING

from limiter.clock import LoopClock, clock_sleep
from limiter.token_bucket import Rate
from server.authentication.basic.passwords import PasswordFileError, is_password, read_passwords
from server.authentication.providers import AuthenticationError, Principal
from server.configuration.secret_sources import KeySourceError, read_source
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limiter.clock import Clock
    from server.authentication.providers import Certificate

FREE_A_SECOND = 10.0
"""Wrong passwords of an address hashed per second and refused immediately; also the initial burst.
"""
OF_A_NAME_A_SECOND = 1.0
"""Further wrong passwords hashed per second for an existing user name; unknown names get none."""
LATE_SECONDS = 0.1
"""Delay of each refusal beyond these rates, so that its time reveals nothing."""
MOST_LATE = 64
"""Delayed refusals of an address; further refusals are immediate, without hashing."""
MOST_COUNTED = 10_000
"""Most addresses, and most names of addresses, with counts; the oldest is evicted."""


class Guesses:
    """Limits on the wrong passwords that clients may try from each address.

    A name that was right once is recognized by a cheaper digest, without this module. So a
    flood of wrong passwords costs little, and excludes no legitimate user: not even a first
    login from the same address, while the flood is below MOST_LATE simultaneous guesses and
    does not guess at the same name.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rates: dict[tuple[str, str], Rate] = {}
        self._late: dict[str, int] = {}

    def begin(self, address: str, name: str | None) -> Guess:
        """Count a login attempt, and decide whether its password may be hashed.

        Args:
            address: The peer's address.
            name: The user name; None if no such user exists.
        """
        rate = self._rate(address, "", FREE_A_SECOND)
        if rate.take():
            return Guess(self, address, rate)
        if name is None or self._late.get(address, 0) >= MOST_LATE:
            return Guess(self, address, None, late=True)
        rate = self._rate(address, name, OF_A_NAME_A_SECOND)
        return Guess(self, address, rate if rate.take() else None, late=True)

    async def wait(self, address: str, since: float) -> None:
        """Delay the refusal of a wrong password, unless MOST_LATE refusals are already delayed."""
        waiting = self._late.get(address, 0)
        if waiting >= MOST_LATE or self._clock.now() >= since + LATE_SECONDS:
            return
        self._late[address] = waiting + 1
        try:
            await clock_sleep(self._clock, since + LATE_SECONDS - self._clock.now())
        finally:
            self._late[address] -= 1
            if not self._late[address]:
                del self._late[address]

    def now(self) -> float:
        """Return the present time of the clock in seconds."""
        return self._clock.now()

    def _rate(self, address: str, name: str, a_second: float) -> Rate:
        found = self._rates.get((address, name))
        if found is None:
            found = self._rates[address, name] = Rate(a_second, self._clock)
            if len(self._rates) > MOST_COUNTED:
                del self._rates[next(iter(self._rates))]
        return found


class Guess:
    """A login attempt whose password is to be checked.

    Attributes:
        may_be_hashed: False if the password must be refused without hashing.
    """

    def __init__(
        self, all_of_them: Guesses, address: str, rate: Rate | None, *, late: bool = False
    ) -> None:
        self._all = all_of_them
        self._address = address
        self._rate = rate
        self._late = late
        self._since = all_of_them.now()
        self.may_be_hashed = rate is not None

    def was_right(self) -> None:
        """Stop counting the login attempt against the address, as the password was right."""
        if self._rate is not None:
            self._rate.give_back()

    async def was_wrong(self) -> None:
        """Delay the refusal of a wrong password, so that guessing is slow."""
        if self._late:
            await self._all.wait(self._address, self._since)


MAX_PASSWORD_BYTES = 255
"""Most bytes of a password in htpasswd; a longer password is refused without hashing."""
MOST_WRONG = 1_000
"""Wrong passwords remembered between ``prepare`` and ``authenticate``."""
_NOBODYS = "$apr1$nobodys$"
_REFUSAL = "Unknown user or invalid password"


class BasicProvider:
    """Authenticates peers by user name and password (``name:password``); the name is the role.

    A hash takes milliseconds: ``prepare`` computes it on a thread, once for each name, and
    ``authenticate`` then returns the result immediately.

    Args:
        source: The value of basicAuthConf: where the password file is.
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
        """Return the peer that the credentials ``name:password`` authenticate.

        Blocks while it hashes a password that ``prepare`` has not checked.
        """
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
        """Return True if a password must be hashed, as it was not accepted before."""
        try:
            return not self._is_known(*_parts(data))
        except AuthenticationError:
            return False

    async def prepare(self, data: bytes, address: str) -> None:
        """Hash a password on a thread, so that ``authenticate`` does not block."""
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
        """Return True if the password is the user's; hash it even if no such user exists.

        Otherwise a quick answer would reveal that a user name does not exist.
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
        """Return ``name:password`` from the request's Authorization header."""
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
    parts = data.rstrip(b":").split(b":", 2)  # as recorded: Java's split drops empty ends
    if len(parts) != 2:
        raise AuthenticationError(
            "Basic authentication token should be user:password", "INVALID_AUTH_DATA"
        )
    name, password = parts
    if len(password) > MAX_PASSWORD_BYTES:
        raise AuthenticationError(_REFUSAL, "INVALID_AUTH_DATA")
    return name.decode("utf-8", "replace"), password
