"""HTTP and CONNECT credentials by configuration, for a recorded broker and Floodgate's.

Covers methods, kinds of keys and anonymous roles, beside ``connects``.
"""

import base64
import hmac
import json
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.authentication.credentials import properties, token

METHOD_HEADER = "X-Pulsar-Auth-Method-Name"
PATH = "/admin/v2/clusters"
"""Allowed for every authenticated role."""
_SECRETS = {"tokenAllowedClockSkewSeconds": "0"}
VARIANTS = {
    "plain": _SECRETS,
    "strict": {"strictAuthMethod": "true"},
    "anonymous": {"anonymousUserRole": "anyone"},
    "audience": {"tokenAudienceClaim": "aud", "tokenAudience": "us"},
    "skew": {"tokenAllowedClockSkewSeconds": "60"},
    "rsa": {"tokenPublicAlg": "RS256"},
    "curve": {"tokenPublicAlg": "ES256"},
}
"""Additional keys beside ``credentials.properties``, by configuration."""


class Shown(NamedTuple):
    """Credentials.

    Attributes:
        method: Method name in CONNECT; empty for none at all.
        data: Data in CONNECT.
    """

    method: str
    data: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The same over HTTP, without the method's name."""
        if self.method == "basic":
            return {"Authorization": f"Basic {base64.b64encode(self.data).decode()}"}
        return {"Authorization": f"Bearer {self.data.decode()}"} if self.data else {}

    @property
    def named(self) -> dict[str, str]:
        """The same with the method's name."""
        return {**self.headers, METHOD_HEADER: self.method} if self.method else self.headers


class Keys:
    """Key pairs, made anew."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65_537, 2048)
        self.curve = ec.derive_private_key(17, ec.SECP256R1())
        self.longer_curve = ec.derive_private_key(17, ec.SECP384R1())

    def properties(self, folder: Path, variant: str) -> dict[str, str]:
        """Return the keys of a server in a configuration; files are made in the folder."""
        keys = properties(folder, **VARIANTS[variant])
        if variant in ("rsa", "curve"):
            del keys["tokenSecretKey"]
            keys["tokenPublicKey"] = f"file://{folder / 'public.key'}"
            (folder / "public.key").write_bytes(self.public(variant))
        return keys

    def public(self, variant: str) -> bytes:
        """Return the public key of a configuration."""
        pair: Any = self.rsa if variant == "rsa" else self.curve
        return bytes(
            pair.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        )

    def good(self, variant: str, **claims: Any) -> bytes:
        """Return a valid token for a configuration."""
        if variant == "rsa":
            return jwt.encode(claims, self.rsa, "RS256").encode()
        if variant == "curve":
            return jwt.encode(claims, self.curve, "ES256").encode()
        return token(**claims)


def cases(keys: Keys, variant: str, now: int) -> dict[str, Shown]:
    """Return credentials by the name of a case; ``now`` in seconds since 1970."""

    def good(**claims: Any) -> Shown:
        return Shown("token", keys.good(variant, **{"sub": "ann", "aud": "us", **claims}))

    found = {
        "nothing": Shown("", b""),
        "a token": good(),
        "a token without a role": Shown("token", keys.good(variant, aud="us")),
        "garbage": Shown("token", b"garbage"),
        "of another's key": Shown("token", token(b"z" * 64, sub="ann", aud="us")),
        "expired": good(exp=now - 3600),
        "expired 30 s ago": good(exp=now - 30),
        "to come in 30 s": good(nbf=now + 30),
        "of another audience": good(aud="them"),
        "of no audience": Shown("token", keys.good(variant, sub="ann")),
        "a password": Shown("basic", b"ann:s3cret"),
        "a wrong password": Shown("basic", b"ann:wrong"),
        "an unknown name": Shown("basic", b"zed:s3cret"),
        "an unknown method": Shown("kerberos", b"x"),
        "a token as a password": Shown("basic", keys.good(variant, sub="ann", aud="us")),
    }
    claims = {"sub": "ann", "aud": "us"}
    if variant == "rsa":
        for name in ("RS384", "RS512", "PS256", "PS512"):
            found[name] = Shown("token", jwt.encode(claims, keys.rsa, name).encode())
    if variant in ("rsa", "curve"):
        found["ES256"] = Shown("token", jwt.encode(claims, keys.curve, "ES256").encode())
        found["ES384"] = Shown("token", jwt.encode(claims, keys.longer_curve, "ES384").encode())
        found["HS256 with the public key"] = Shown("token", _confused(keys.public(variant), claims))
        found["unsigned"] = Shown("token", jwt.encode(claims, None, "none").encode())
    return found


def _confused(public: bytes, claims: dict[str, str]) -> bytes:
    """Return a token signed with a public key's bytes as secret."""
    parts = (json.dumps({"alg": "HS256"}).encode(), json.dumps(claims).encode())
    signed = b".".join(map(_base64url, parts))
    return signed + b"." + _base64url(hmac.digest(public, signed, "sha256"))


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def line(variant: str, case: str, **answers: str | int) -> str:
    return json.dumps({"variant": variant, "case": case, **answers})
