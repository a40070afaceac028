"""Authentication by JSON web tokens, signed with a secret or a private key."""

from __future__ import annotations

import json
import warnings
from datetime import datetime
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key

from server.authentication.providers import AuthenticationError, ExpiredError, Principal
from server.configuration.secret_sources import KeySourceError, read_key
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limiter.clock import Clock
    from server.authentication.providers import Certificate
    from server.configuration.authentication import TokenSettings

BEARER = "Bearer "
_INVALID, _NO_TOKEN = "INVALID_TOKEN", "INVALID_AUTH_DATA"
LEAST_RSA_BITS = 2048
FARTHEST_MS = 2**63 - 1
"""The last moment of Java's dates, in milliseconds since 1970."""
_OF_SECRETS = (("HS256", 32), ("HS384", 48), ("HS512", 64))
_OF_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BROKEN = (jwt.PyJWTError, ValueError, TypeError, NotImplementedError, RecursionError)


class TokenProvider:
    """Authenticates peers by JSON web tokens: signature, validity period, audience, and role.

    Args:
        settings: The keys of tokens.
        clock: The source of time, for expiry.

    Attributes:
        method: ``token``.
        name: See AuthenticationProvider.

    Raises:
        StartError: The key cannot be read or used.

    Source: upstream AuthenticationProviderToken.
    """

    method = "token"
    name = "AuthenticationProviderToken"

    def __init__(self, settings: TokenSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._key, self._algorithms = _key_of(settings)
        self._signatures = jwt.PyJWS()

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """Check a JSON web token, and return the peer that it authenticates."""
        if not data.strip():
            raise AuthenticationError("Blank token found", _NO_TOKEN)
        claims = self._claims(data)
        expires_at_ms = self._check_times(claims)
        self._check_audience(claims)
        role, roles = self._role(claims)
        return Principal(role, self.method, expires_at_ms, roles)

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """Return the token in the request's Authorization header."""
        given = headers.get("Authorization", "")
        if not given.startswith(BEARER):
            raise AuthenticationError("Invalid HTTP Authorization header")
        return given.removeprefix(BEARER).encode("utf-8", "surrogateescape")

    def _claims(self, token: bytes) -> Mapping[str, Any]:
        try:
            signed = self._signatures.decode_complete(
                token, self._key, algorithms=list(self._algorithms)
            )
            claims = json.loads(signed["payload"])
        except _BROKEN as error:
            # The libraries' texts quote only algorithm and header names of a token.
            raise AuthenticationError(
                f"Failed to authentication token: {type(error).__name__}", _INVALID
            ) from None
        if not isinstance(claims, dict):
            raise AuthenticationError(
                "Failed to authentication token: its claims are not a JSON object", _INVALID
            )
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> int | None:
        now_ms, skew_ms = self._clock.wall_ms(), self._settings.skew_seconds * 1000
        expires_at_ms, begins_at_ms = _time_ms(claims, "exp"), _time_ms(claims, "nbf")
        if expires_at_ms is not None and now_ms - skew_ms > expires_at_ms:
            raise ExpiredError("Failed to authentication token: it has expired", _INVALID)
        if begins_at_ms is not None and now_ms + skew_ms < begins_at_ms:
            raise AuthenticationError(
                "Failed to authentication token: it is not valid yet", _INVALID
            )
        return expires_at_ms

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        claim = self._settings.audience_claim
        if not claim:
            return
        found = claims.get(claim)
        named = found if isinstance(found, list) else [found]
        texts = all(isinstance(one, str) for one in named)
        if not texts or self._settings.audience not in named:
            raise AuthenticationError(
                f"the claim {claim} of the token does not name this server", "INVALID_AUDIENCES"
            )

    def _role(self, claims: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
        """Return the token's first role, and all roles if the claim is a list.

        A token without a role gets an empty role, without rights.
        """
        claim = self._settings.claim
        found = claims.get(claim)
        if found is None or found == []:
            return "", frozenset()
        if isinstance(found, list) and claim != "sub":
            first = found[0] if isinstance(found[0], str) else ""
            roles = frozenset(role for role in found if isinstance(role, str) and role)
            self._check_text(*roles)
            return first, roles
        if not isinstance(found, str):
            raise AuthenticationError(f"the claim {claim} of the token holds no role", _INVALID)
        self._check_text(found)
        return found, frozenset()

    def _check_text(self, *roles: str) -> None:
        """Refuse a role with unpaired surrogates, which JSON allows but UTF-8 cannot encode."""
        try:
            "".join(roles).encode()
        except UnicodeEncodeError:
            raise AuthenticationError(
                f"the claim {self._settings.claim} of the token holds no role", _INVALID
            ) from None


def _time_ms(claims: Mapping[str, Any], claim: str) -> int | None:
    value = claims.get(claim)
    if value is None:
        return None
    try:
        return max(-FARTHEST_MS, min(int(_seconds_of(value)) * 1000, FARTHEST_MS))
    except (ValueError, TypeError, OverflowError):
        raise AuthenticationError(
            f"Failed to authentication token: {claim} is no time", _INVALID
        ) from None


def _seconds_of(value: object) -> float:
    """Return a claim's time in seconds since 1970, from a number, digits, or an ISO 8601 date."""
    if isinstance(value, str):
        return (
            int(value)
            if value.isascii() and value.isdigit()
            else datetime.fromisoformat(value).timestamp()
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _key_of(settings: TokenSettings) -> tuple[Any, tuple[str, ...]]:
    if settings.secret_key:
        secret = _read("tokenSecretKey", settings.secret_key, may_be_pem=False)
        algorithms = tuple(name for name, least in _OF_SECRETS if len(secret) >= least)
        if not algorithms:
            raise StartError(
                f"tokenSecretKey: a key of {len(secret)} bytes is too short, 32 are the least; "
                "`floodgate-admin tokens create-secret-key` makes one"
            )
        return secret, algorithms
    return _public_key(settings)


def _read(key: str, source: str, *, may_be_pem: bool) -> bytes:
    try:
        return read_key(source, may_be_pem=may_be_pem)
    except KeySourceError as error:
        raise StartError(f"{key}: {error}") from None


def _public_key(settings: TokenSettings) -> tuple[Any, tuple[str, ...]]:
    found = _read("tokenPublicKey", settings.public_key, may_be_pem=True)
    load = load_pem_public_key if found.startswith(b"-----BEGIN") else load_der_public_key
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kinds that are refused below
            key = load(found)
    except (ValueError, UnsupportedAlgorithm):
        raise StartError("tokenPublicKey: this is no public key (DER or PEM)") from None
    is_curve = isinstance(key, ec.EllipticCurvePublicKey)
    algorithms = _algorithms_of(key)
    if not algorithms or is_curve is not settings.public_algorithm.startswith("ES"):
        raise StartError(
            f"tokenPublicKey: this key is not one for tokenPublicAlg={settings.public_algorithm}; "
            f"RS and PS need RSA of {LEAST_RSA_BITS} bits or more, ES needs P-256, P-384 or P-521"
        )
    return key, algorithms


def _algorithms_of(key: object) -> tuple[str, ...]:
    if isinstance(key, rsa.RSAPublicKey):
        return _OF_RSA if key.key_size >= LEAST_RSA_BITS else ()
    if isinstance(key, ec.EllipticCurvePublicKey):
        name = _OF_CURVES.get(key.curve.name)
        return (name,) if name else ()
    return ()
