"""Test keys and tokens, and configuration keys that accept them."""

from pathlib import Path
from typing import Any

import jwt

SECRET = bytes(range(64))
PACKAGE = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
# Both passwords are s3cret, as `htpasswd -m` and `htpasswd -d` write them.
PASSWORDS = "ann:$apr1$abcdefgh$M2T3erDstkD7SsE2QQnfH0\nbob:abhWCwoTZY2c6\n"


def token(secret: bytes = SECRET, algorithm: str = "HS256", **claims: Any) -> bytes:
    return jwt.encode(claims, secret, algorithm=algorithm).encode()


def properties(folder: Path, **more: str) -> dict[str, str]:
    """Return the keys of a server with tokens and passwords; writes the key files."""
    (folder / "secret.key").write_bytes(SECRET)
    (folder / "passwords").write_text(PASSWORDS)
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": f"{PACKAGE}Token,{PACKAGE}Basic",
        "tokenSecretKey": f"file://{folder / 'secret.key'}",
        "basicAuthConf": f"file://{folder / 'passwords'}",
        **more,
    }
