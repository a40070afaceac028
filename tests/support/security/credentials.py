"""Credentials: each role's tokens, wrong tokens, and proxies' with an original principal.

Made with the standard library alone, so that faults in Floodgate's tokens cannot hide faults in its
servers.
"""

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass

KEY = b"a secret of thirty-two bytes....of recordings only, known to all"
"""The servers' secret key (see ``key_url``)."""
_OTHER_KEY = b"another secret of thirty-two bytes that the servers do not know."
SUPERUSERS = ("super", "gate", "broker")
PROXY_ROLES = ("proxy", "gate")
"""``gate`` is a superuser, as proxies' roles mostly are; ``proxy`` has grants (see the world)."""


@dataclass(frozen=True)
class Credential:
    """A peer's credentials.

    Attributes:
        name: In recordings.
        token: None for no token.
        original: The original principal; empty for none.
    """

    name: str
    token: str | None
    original: str = ""

    @property
    def headers(self) -> dict[str, str]:
        found = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return found | ({"X-Original-Principal": self.original} if self.original else {})


def key_url() -> str:
    """Return the key as a data URL, the configuration's form."""
    return f"data:;base64,{base64.b64encode(KEY).decode()}"


def token(role: str | None, *, key: bytes = KEY, algorithm: str = "HS256", **claims: object) -> str:
    """Return a role's token; None for a token without subject."""
    body = claims if role is None else {"sub": role, **claims}
    text = ".".join(_encoded({"alg": algorithm} if part is None else part) for part in (None, body))
    if algorithm == "none":
        return f"{text}."
    signature = hmac.digest(key, text.encode(), hashlib.sha256)
    return f"{text}.{_base64(signature)}"


def _encoded(value: dict[str, object]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


ROLES = (
    "super",
    "admin",
    "produce",
    "consume",
    "functions",
    "packages",
    "topic-produce",
    "topic-consume",
    "subscriber",
    "wild-one",
    "one-wild",
    "nobody",
)
"""Roles that connect without a proxy; the world defines their grants."""
_THROUGH = (
    ("proxy", ""),
    ("proxy", "super"),
    ("proxy", "admin"),
    ("proxy", "consume"),
    ("proxy", "nobody"),
    ("gate", ""),
    ("gate", "super"),
    ("gate", "admin"),
    ("gate", "produce"),
    ("gate", "consume"),
    ("gate", "nobody"),
    ("gate", "proxy"),
    ("consume", "admin"),
    ("consume", "consume"),
)


def wrong_credentials() -> list[Credential]:
    """Return credentials that authenticate no role."""
    an_hour_ago = int(time.time()) - 3600
    return [
        Credential("(none)", None),
        Credential("(empty)", ""),
        Credential("(garbage)", "garbage"),
        Credential("(wrong key)", token("super", key=_OTHER_KEY)),
        Credential("(expired)", token("super", exp=an_hour_ago)),
        Credential("(not yet)", token("super", nbf=an_hour_ago + 7200)),
        Credential("(unsigned)", token("super", algorithm="none")),
        Credential("(no subject)", token(None)),
    ]


def few_wrong_credentials() -> list[Credential]:
    """Return the wrong credentials used with every call."""
    names = ("(none)", "(wrong key)", "(expired)")
    return [one for one in wrong_credentials() if one.name in names]


def right_credentials() -> list[Credential]:
    """Return credentials of roles, and of proxies for original principals."""
    plain = [Credential(role, token(role)) for role in ROLES]
    through = [
        Credential(f"{role} for {original or '(none)'}", token(role), original)
        for role, original in _THROUGH
    ]
    return plain + through
