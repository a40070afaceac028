"""CONNECTs with every kind of credentials, for a recorded broker and Floodgate's."""

from __future__ import annotations

from typing import Any

import proto.PulsarApi_pb2 as pb
from tests.support.authentication.credentials import token

VARIANTS = {
    "audience": {
        "tokenAudienceClaim": "aud",
        "tokenAudience": "us",
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "proxyRoles": "proxy,proxy2",
    },
    "alone": {
        "tokenAuthClaim": "roles",
        "proxyRoles": "proxy",
        "tokenAllowedClockSkewSeconds": "60",
    },
    "original": {
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "proxyRoles": "proxy,anyone",
        "authenticateOriginalAuthData": "true",
        "anonymousUserRole": "anyone",
    },
}
"""Additional keys beside ``credentials.properties``, by configuration."""


def cases(variant: str, now: int) -> dict[str, dict[str, Any]]:
    """Return the fields of each CONNECT by case name.

    Args:
        variant: Configuration name.
        now: Seconds since 1970.
    """
    return {"audience": _audience, "alone": _alone, "original": _original}[variant](now)


def connect(fields: dict[str, Any]) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    command.connect.MergeFrom(
        pb.CommandConnect(client_version="tests", protocol_version=21, **fields)
    )
    return command


def outcome(answer: pb.BaseCommand | None) -> str:
    """Return an answer in words."""
    if answer is None:
        return "closed"
    if answer.type == pb.BaseCommand.ERROR:
        return f"{pb.ServerError.Name(answer.error.error)}: {answer.error.message}"
    return pb.BaseCommand.Type.Name(answer.type)


def _shown(method: str, data: bytes, **more: Any) -> dict[str, Any]:
    return {"auth_method_name": method, "auth_data": data, **more}


def _audience(now: int) -> dict[str, dict[str, Any]]:
    def claims(**given: Any) -> dict[str, Any]:
        return _shown("token", token(aud="us", **given))

    def speaking(role: str, original: str, **more: Any) -> dict[str, Any]:
        return {**claims(sub=role), "original_principal": original, **more}

    unsigned = b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4IiwiYXVkIjoidXMifQ."
    times = {"exp": now + 60, "exp, past": now - 60, "exp, digits": str(now + 60)}
    times |= {"exp, true": True, "exp, fraction": now + 60.5, "exp, words": "soon"}
    times |= {"exp, date": "2999-01-01T00:00:00Z", "exp, in ages": 10**30}
    roles = {"empty": "", "blank": " ", "list": ["a", "b"], "empty list": [], "number": 5}
    audiences = {"other": "them", "list": ["them", "us"], "list of others": ["them"]}
    audiences |= {"number": 5, "mixed list": [5, "us"]}
    passwords = {
        "apr1": b"ann:s3cret",
        "crypt": b"bob:s3cret",
        "wrong": b"ann:secret",
        "crypt, wrong": b"bob:secret",
        "unknown": b"zed:s3cret",
        "no colon": b"ann",
        "nothing": b"",
        "colon inside": b"ann:s3:cret",
        "colon behind": b"ann:s3cret:",
        "no password": b"ann:",
    }
    return {
        "nothing": {},
        "none": _shown("none", b""),
        "unknown method": _shown("kerberos", b"x"),
        "number of a method": {"auth_method": pb.AuthMethodAthens},
        "token": claims(sub="admin"),
        "token, blank": _shown("token", b""),
        "token, spaces": _shown("token", b"  "),
        "token, garbage": _shown("token", b"garbage"),
        "token and a newline": _shown("token", token(sub="x", aud="us") + b"\n"),
        "token, 384": _shown("token", token(algorithm="HS384", sub="x", aud="us")),
        "token, 512": _shown("token", token(algorithm="HS512", sub="x", aud="us")),
        "token, unsigned": _shown("token", unsigned),
        "token, another's key": _shown("token", token(b"z" * 64, sub="x", aud="us")),
        "token, nbf to come": claims(sub="x", nbf=now + 60),
        "token, iat to come": claims(sub="x", iat=now + 600),
        **{f"token, {name}": claims(sub="x", exp=value) for name, value in times.items()},
        "role, none": claims(),
        "role, null": claims(sub=None),
        **{f"role, {name}": claims(sub=value) for name, value in roles.items()},
        "audience, none": _shown("token", token(sub="x")),
        **{
            f"audience, {name}": _shown("token", token(sub="x", aud=value))
            for name, value in audiences.items()
        },
        **{f"password, {name}": _shown("basic", data) for name, data in passwords.items()},
        "proxy alone": claims(sub="proxy"),
        "proxy for a client": speaking("proxy", "ann"),
        "proxy for a client, with its version": speaking("proxy", "ann", proxy_version="4"),
        "proxy for nobody": speaking("proxy", ""),
        "proxy for a blank": speaking("proxy", " "),
        "proxy for a proxy": speaking("proxy", "proxy2"),
        "proxy for a client with wrong credentials": speaking(
            "proxy", "ann", original_auth_method="token", original_auth_data="garbage"
        ),
        "client for another": speaking("ann", "bob"),
        "client for itself": speaking("ann", "ann"),
        "client for nobody": speaking("ann", ""),
        "client with a proxy's version": {**claims(sub="ann"), "proxy_version": "4"},
    }


def _alone(now: int) -> dict[str, dict[str, Any]]:
    def claims(**given: Any) -> dict[str, Any]:
        return _shown("token", token(**given))

    roles = {"one": "a", "list": ["a", "b"], "empty list": [], "number": 5, "numbers": [1, "b"]}
    roles |= {"list with an empty one": ["", "b"], "object": {"a": 1}}
    return {
        **{f"role, {name}": claims(roles=value) for name, value in roles.items()},
        "role of another claim": claims(sub="a"),
        "just expired": claims(roles="a", exp=now - 30),
        "expired": claims(roles="a", exp=now - 90),
        "soon": claims(roles="a", nbf=now + 30),
        "too soon": claims(roles="a", nbf=now + 90),
        "client for another": {**claims(roles="a"), "original_principal": "b"},
        "client with a proxy's version": {**claims(roles="a"), "proxy_version": "4"},
        "proxy alone": claims(roles="proxy"),
    }


def _original(now: int) -> dict[str, dict[str, Any]]:
    def behind(role: str | None, method: str | None, data: str | None) -> dict[str, Any]:
        by = {} if role is None else _shown("token", token(sub=role))
        said = {"original_auth_method": method, "original_auth_data": data}
        return {**by, "original_principal": "told", **{k: v for k, v in said.items() if v}}

    ann, old = token(sub="ann").decode(), token(sub="ann", exp=now - 60).decode()
    return {
        "anonymous": {},
        "anonymous of an unknown method": _shown("kerberos", b"x"),
        "wrong token": _shown("token", b"garbage"),
        "anonymous for another": behind(None, "token", ann),
        "proxy, client's token": behind("proxy", "token", ann),
        "proxy, client's old token": behind("proxy", "token", old),
        "proxy, client's wrong token": behind("proxy", "token", "garbage"),
        "proxy, client's password": behind("proxy", "basic", "ann:s3cret"),
        "proxy, token of a proxy": behind("proxy", "token", token(sub="proxy").decode()),
        "proxy, no credentials": behind("proxy", None, None),
        "proxy, no method": behind("proxy", None, ann),
        "proxy, a method alone": behind("proxy", "token", None),
        "client, client's token": behind("zed", "token", ann),
        "client, own token": behind("ann", "token", ann),
    }
