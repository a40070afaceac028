"""Tokens for a broker with authentication: an administrator's, other roles', an expiring token."""

import base64
import hashlib
import hmac
import json

from loadgen.virtual.loop import EPOCH_MS

SECRET = b"a secret of thirty-two bytes or so"
_EXPIRES_SECONDS = 100


def _token(**claims: object) -> bytes:
    text = b".".join(_url64(json.dumps(one).encode()) for one in ({"alg": "HS256"}, claims))
    return text + b"." + _url64(hmac.digest(SECRET, text, hashlib.sha256))


def _url64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


ADMIN, PROXY = _token(sub="admin"), _token(sub="proxy")
TOKENS = (
    ADMIN,
    _token(sub="somebody"),
    PROXY,
    _token(sub="admin", exp=EPOCH_MS // 1000 + _EXPIRES_SECONDS),
    b"a.b.c",
    b"",
)
KEYS = {
    "authenticationEnabled": "true",
    "authenticationProviders": (
        "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
    ),
    "tokenSecretKey": "data:;base64," + base64.b64encode(SECRET).decode(),
    "authorizationEnabled": "true",
    "superUserRoles": "admin",
    "proxyRoles": "proxy",
}
"""Keys that enable tokens and authorization."""
