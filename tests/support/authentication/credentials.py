"""Keys and tokens of tests, and the keys of configurations that take them."""

from pathlib import Path
from typing import Any

import jwt

SECRET = bytes(range(64))
PACKAGE = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
# The password of both is s3cret, as `htpasswd -m` and `htpasswd -d` write it.
PASSWORDS = "ann:$apr1$abcdefgh$M2T3erDstkD7SsE2QQnfH0\nbob:abhWCwoTZY2c6\n"


def token(secret: bytes = SECRET, algorithm: str = "HS256", **claims: Any) -> bytes:
    """Return a token with these claims."""
    return jwt.encode(claims, secret, algorithm=algorithm).encode()


def properties(folder: Path, **more: str) -> dict[str, str]:
    """Return the keys of a server that takes tokens and passwords, whose files are made here."""
    (folder / "secret.key").write_bytes(SECRET)
    (folder / "passwords").write_text(PASSWORDS)
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": f"{PACKAGE}Token,{PACKAGE}Basic",
        "tokenSecretKey": f"file://{folder / 'secret.key'}",
        "basicAuthConf": f"file://{folder / 'passwords'}",
        **more,
    }
