"""Tokens and TLS of the client against a real broker, beside the official client."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from tests.official.servers import free_port
from tests.official_api.apis import APIS, code_of, new_topic, within
from tests.proof.client.real_broker import COMMAND, real_broker
from tests.proof.result import ProofError, ProofOptions, ProofResult

TOKEN_SECONDS = 3
REFRESHED_SECONDS = 9.0
"""Longer than several lifetimes of a token."""
SEND_MILLIS = 4_000
NAMESPACE_SECONDS = 60.0
_PLUGIN = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
_CLIENT_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


class Keys:
    """The files of an authority, a server and two clients, and tokens signed by one secret."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = secrets.token_bytes(32)
        rsa = trustme.KeyType.RSA  # the broker's only supported form
        authority = trustme.CA(key_type=rsa)
        self.trust = self._written("ca.pem", authority.cert_pem.bytes())
        self.server = self._pair(authority, "127.0.0.1")
        self.admin = self._pair(authority, "admin")
        self.nobody = self._pair(authority, "nobody")
        self.stranger = self._pair(trustme.CA(key_type=rsa), "stranger")

    def token(self, role: str, seconds: float = 3_600.0, secret: bytes | None = None) -> str:
        claims = {"sub": role, "exp": int(time.time() + seconds)}
        said = ".".join(_base64(json.dumps(one).encode()) for one in ({"alg": "HS256"}, claims))
        signed = hmac.digest(secret or self._secret, said.encode(), hashlib.sha256)
        return f"{said}.{_base64(signed)}"

    def token_file(self, role: str) -> str:
        return "file://" + self._written("token", self.token(role).encode() + b"\n")

    def broker_keys(self, ports: Ports, *, wants_certificate: bool) -> dict[str, str]:
        """Return keys of broker.conf."""
        return {
            "brokerServicePort": str(ports.plain),
            "brokerServicePortTls": str(ports.tls),
            "webServicePort": str(ports.web),
            "tlsCertificateFilePath": self.server[0],
            "tlsKeyFilePath": self.server[1],
            "tlsTrustCertsFilePath": self.trust,
            "tlsRequireTrustedClientCertOnConnect": str(wants_certificate).lower(),
            "authenticationEnabled": "true",
            "authenticationProviders": f"{_PLUGIN}Token,{_PLUGIN}Tls",
            "authenticationRefreshCheckSeconds": "1",
            "tokenSecretKey": f"data:;base64,{base64.b64encode(self._secret).decode()}",
            "authorizationEnabled": "true",
            "superUserRoles": "admin",
            "brokerClientAuthenticationPlugin": _CLIENT_PLUGIN,
            "brokerClientAuthenticationParameters": f"token:{self.token('admin')}",
        }

    def _pair(self, authority: trustme.CA, name: str) -> tuple[str, str]:
        issued = authority.issue_cert(name, common_name=name, key_type=trustme.KeyType.RSA)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        certificate = b"".join(one.bytes() for one in issued.cert_chain_pems)
        return self._written(f"{name}.pem", certificate), self._written(f"{name}.key", pem)

    def _written(self, name: str, content: bytes) -> str:
        path = self._folder / name
        path.write_bytes(content)
        return str(path)


@dataclass(frozen=True)
class Ports:
    plain: int
    tls: int
    web: int


@dataclass(frozen=True)
class Case:
    """Credentials, and their expected result.

    Attributes:
        wanted: The received message, or the name of the error.
        options: Client options, made of the import's names.
        tls: Whether TLS is used.
    """

    wanted: str
    options: Callable[[Any], Mapping[str, object]]
    tls: bool = True


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cases(keys: Keys) -> dict[str, Case]:
    """Return the cases with optional client certificates."""
    trusts = {"tls_trust_certs_file_path": keys.trust, "tls_validate_hostname": True}

    def token(said: object, **more: object) -> Callable[[Any], Mapping[str, object]]:
        return lambda api: {"authentication": api.AuthenticationToken(said), **more}

    def certificate(pair: tuple[str, str]) -> Callable[[Any], Mapping[str, object]]:
        return lambda api: {"authentication": api.AuthenticationTLS(*pair), **trusts}

    refused = "AuthenticationError"
    return {
        "nothing, plainly": Case(refused, lambda _: {}, tls=False),
        "a token, plainly": Case("arrived", token(keys.token("admin")), tls=False),
        "a token's function": Case(
            "arrived", token(lambda: keys.token("admin", TOKEN_SECONDS)), tls=False
        ),
        "a token's file": Case("arrived", token(keys.token_file("admin")), tls=False),
        "a token that another secret signed": Case(
            refused, token(keys.token("admin", secret=bytes(32))), tls=False
        ),
        "a token that has run out": Case(refused, token(keys.token("admin", -1)), tls=False),
        "a token without rights": Case(
            "AuthorizationError", token(keys.token("nobody")), tls=False
        ),
        "nothing, by TLS": Case(refused, lambda _: trusts),
        "a token, by TLS": Case("arrived", token(keys.token("admin"), **trusts)),
        "a token, to a broker that is not trusted": Case(
            "ConnectError", token(keys.token("admin"))
        ),
        "a certificate": Case("arrived", certificate(keys.admin)),
        "a certificate without rights": Case("AuthorizationError", certificate(keys.nobody)),
    }


def certificate_cases(keys: Keys) -> dict[str, Case]:
    """Return the cases with required client certificates."""
    trusts = {"tls_trust_certs_file_path": keys.trust, "tls_validate_hostname": True}

    def files(pair: tuple[str, str]) -> Mapping[str, object]:
        return {"tls_certificate_file_path": pair[0], "tls_private_key_file_path": pair[1]}

    return {
        "mutual TLS: a certificate": Case(
            "arrived", lambda api: {"authentication": api.AuthenticationTLS(*keys.admin), **trusts}
        ),
        "mutual TLS: a certificate and a token": Case(
            "arrived",
            lambda api: {
                "authentication": api.AuthenticationToken(keys.token("admin")),
                **files(keys.admin),
                **trusts,
            },
        ),
        "mutual TLS: a token alone": Case(
            "ConnectError",
            lambda api: {"authentication": api.AuthenticationToken(keys.token("admin")), **trusts},
        ),
        "mutual TLS: a stranger's certificate": Case(
            "ConnectError",
            lambda api: {"authentication": api.AuthenticationTLS(*keys.stranger), **trusts},
        ),
    }


def prove(options: ProofOptions) -> ProofResult:
    """Start a real broker twice, and try every case with both clients."""
    result = ProofResult({"outcomes": {}})
    if COMMAND not in os.environ:
        said = f"not played to a real Pulsar: {COMMAND} names no command that starts one"
        result.check("a real broker", True, said)
        return result
    keys = Keys(options.out)
    for wants_certificate, tried in ((False, cases(keys)), (True, certificate_cases(keys))):
        ports = Ports(free_port(), free_port(), free_port())
        options.note("a real broker starts")
        with real_broker(keys.broker_keys(ports, wants_certificate=wants_certificate)):
            _wait_for_namespace(keys, ports)
            asyncio.run(_try_all(tried, ports, options, result))
            if not wants_certificate:
                asyncio.run(_challenge_all(keys, ports, options, result))
    return result


async def _try_all(
    tried: Mapping[str, Case], ports: Ports, options: ProofOptions, result: ProofResult
) -> None:
    for name, case in tried.items():
        options.note(name)
        url = (
            f"pulsar+ssl://127.0.0.1:{ports.tls}"
            if case.tls
            else f"pulsar://127.0.0.1:{ports.plain}"
        )
        outcomes = {key: await _outcome(api, url, case) for key, api in APIS.items()}
        _judge(name, outcomes, case.wanted, result)


def _judge(name: str, outcomes: Mapping[str, str], wanted: str, result: ProofResult) -> None:
    result.figures["outcomes"][name] = dict(outcomes)
    said = outcomes["client"]
    result.check(
        name, said == wanted, f"{name}: {said}; the official: {outcomes['pulsar.asyncio']}"
    )


async def _outcome(api: Any, url: str, case: Case) -> str:
    client = api.Client(url, operation_timeout_seconds=5, **case.options(api))
    try:
        topic = new_topic()
        consumer = await within(client.subscribe(topic, "s"))
        producer = await within(client.create_producer(topic))
        await within(producer.send(b"arrived"))
        return (await within(consumer.receive())).data().decode()
    except api.AnyError as error:
        return code_of(error)
    finally:
        await within(client.close())


async def _challenge_all(
    keys: Keys, ports: Ports, options: ProofOptions, result: ProofResult
) -> None:
    options.note(f"tokens that live {TOKEN_SECONDS} s")
    for name, renewed, wanted in (
        ("a token that is renewed when the broker asks", True, "arrived by one connection"),
        ("a token that runs out and is not renewed", False, "Timeout"),
    ):
        outcomes = {
            key: await _challenged(api, keys, ports, renewed=renewed) for key, api in APIS.items()
        }
        _judge(name, outcomes, wanted, result)


async def _challenged(api: Any, keys: Keys, ports: Ports, *, renewed: bool) -> str:
    shown = []

    def token() -> str:
        if renewed or not shown:
            shown.append(keys.token("admin", TOKEN_SECONDS))
        return shown[-1]

    topic = new_topic()
    client = api.Client(
        f"pulsar://127.0.0.1:{ports.plain}", authentication=api.AuthenticationToken(token)
    )
    try:
        consumer = await within(client.subscribe(topic, "s"))
        producer = await within(client.create_producer(topic, send_timeout_millis=SEND_MILLIS))
        before = await _addresses(keys, ports, topic)
        give_up = time.monotonic() + REFRESHED_SECONDS
        while time.monotonic() < give_up:
            await within(producer.send(b"x"))
            await within(consumer.receive())
            await asyncio.sleep(0.2)
        if len(shown) < REFRESHED_SECONDS / TOKEN_SECONDS:
            return f"arrived with {len(shown)} tokens"
        after = await _addresses(keys, ports, topic)
    except api.AnyError as error:
        return code_of(error)
    finally:
        await within(client.close())
    return "arrived by one connection" if after == before else "arrived by several connections"


async def _addresses(keys: Keys, ports: Ports, topic: str) -> list[str]:
    """Return the source addresses of a topic's producer and consumer."""
    said = await asyncio.to_thread(_ask, keys, ports, f"{topic.replace('://', '/')}/stats")
    stats = json.loads(said)
    users = [*stats["publishers"], *stats["subscriptions"]["s"]["consumers"]]
    return [one["address"] for one in users]


def _ask(keys: Keys, ports: Ports, path: str) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{ports.web}/admin/v2/{path}",
        headers={"Authorization": f"Bearer {keys.token('admin')}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        said: bytes = answer.read()
    return said


def _wait_for_namespace(keys: Keys, ports: Ports) -> None:
    """Wait until a standalone has created its namespace: it answers earlier."""
    give_up = time.monotonic() + NAMESPACE_SECONDS
    while time.monotonic() < give_up:
        with suppress(urllib.error.HTTPError):
            if b"public/default" in _ask(keys, ports, "namespaces/public"):
                return
        time.sleep(0.2)
    raise ProofError(f"the real broker has no public/default after {NAMESPACE_SECONDS:g} s")
