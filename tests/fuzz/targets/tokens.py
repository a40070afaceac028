"""Credentials: tokens, passwords, keys and their sources, CONNECT and HTTP headers.

An input: a byte for the kind, then bytes. A token is a header and claims (a zero byte between),
signed here with the server's key, or arbitrary bytes.
"""

import base64
import json
import random
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from google.protobuf.message import DecodeError
from jwt.algorithms import HMACAlgorithm

import proto.PulsarApi_pb2 as pb
from server.authentication.basic.passwords import PasswordFileError, is_password, read_passwords
from server.authentication.basic.provider import BasicProvider
from server.authentication.handshake import ProxyRules, session_of
from server.authentication.providers import AuthenticationError, Principal
from server.authentication.service import AuthenticationService, CertificateProvider
from server.authentication.token import TokenProvider
from server.configuration.authentication import TokenSettings
from server.configuration.secret_sources import KeySourceError, is_literal, read_source
from server.connection.request_errors import RequestError
from server.errors import StartError
from tests.fuzz.inputs.commands import CommandMaker
from tests.fuzz.rules import TURNS, BrokenRuleError

ALLOWED = (AuthenticationError, RequestError, KeySourceError, PasswordFileError, StartError)
FIGURES = {"tokens": 0, "accepted": 0}
SIGNED, RAW, CURVE, PASSWORDS, SOURCE, CONNECT, HEADERS, KEY = range(8)
NOW_MS = 1_767_225_600_000
SECRET = b"a secret of thirty-two bytes or so"
_LEAST_SHOWN = 12
_MOST_PASSWORD = 64
_CERTIFICATES: tuple[Any, ...] = (
    None, {}, {"subject": ((("commonName", "admin"),),)}, {"subject": ((),)}, {"subject": ()},
)  # fmt: skip
CLAIMS: tuple[Any, ...] = (
    "admin", "", None, 5, 1e400, float("nan"), -1, True, [], ["a"], ["a", 5], {}, "2026-01-01",
    "99999999999999999999", 2**63, "²", "2026-01-01T00:00:00Z", NOW_MS // 1000 + 60, "\ud800", 0,
)  # fmt: skip
_HEADERS = (b'{"alg":"HS256"}', b'{"alg":"none"}', b'{"alg":"HS512","typ":"JWT"}', b"{}", b"[]",
            b'{"alg":"HS256","crit":["x"]}', b'{"alg":["HS256"]}', b'{"alg":"HS256","b64":false}',
            b'{"alg":"HS256","kid":5}', b'{"alg":"ES256"}', b"")  # fmt: skip


class _Clock:
    def wall_ms(self) -> int:
        return NOW_MS


def one_input(data: bytes) -> None:
    """Parse credentials of a kind; errors do not reveal credentials."""
    what, body = (data[0] if data else 0), data[1:]
    with TURNS.turn():
        try:
            _KINDS[what % 8](what, body)
        except ALLOWED as error:
            if what % 8 != SOURCE:  # A secret's location is no secret.
                _check_words(error, body)
            raise


def _check_words(error: Exception, body: bytes) -> None:
    """Find credentials in an error's text."""
    words = str(getattr(error, "reason", None) or error)
    for part in body.split(b"\0"):
        odd = part.isalnum() and not part.isalpha()  # Not a word of the error itself.
        if odd and len(part) >= _LEAST_SHOWN and part.decode("latin-1") in words:
            raise BrokenRuleError("an error shows credentials")


def _signed(what: int, body: bytes) -> None:
    """Present a token signed with the server's key."""
    header, _, claims = body.partition(b"\0")
    token = _url64(header or _HEADERS[0]) + b"." + _url64(claims)
    algorithm = HMACAlgorithm(HMACAlgorithm.SHA256)
    _accepted(
        _service(what).authenticate(
            "token", token + b"." + _url64(algorithm.sign(token, SECRET)), None
        )
    )


def _raw(what: int, body: bytes) -> None:
    method = ("token", "basic", "tls", "")[what >> 3 & 3]
    _accepted(_service(what).authenticate(method, body, _CERTIFICATES[len(body) % 5]))


def _curve(_: int, body: bytes) -> None:
    """Present a token signed with a key pair, or with half a signature."""
    header, _, claims = body.partition(b"\0")
    token = _url64(header or _HEADERS[9]) + b"." + _url64(claims)
    signed = _curve_key().sign(token, ec.ECDSA(hashes.SHA256()))
    first, second = utils.decode_dss_signature(signed)
    signature = first.to_bytes(32) + second.to_bytes(32)
    _accepted(
        _curve_provider().authenticate(token + b"." + _url64(signature[: 64 - len(body) % 2]), None)
    )


def _passwords(_: int, body: bytes) -> None:
    text, _, password = body.partition(b"\0")
    for hashed in list(read_passwords(text.decode("utf-8", "replace")).values())[:2]:
        is_password(password[:_MOST_PASSWORD], hashed)


def _source(_: int, body: bytes) -> None:
    text = body.decode("utf-8", "replace")
    is_literal(text)
    read_source(text)


def _connect(what: int, body: bytes) -> None:
    command = pb.CommandConnect()
    try:
        command.ParseFromString(body)
    except DecodeError:
        return
    rules = ProxyRules(frozenset({"proxy"}), bool(what & 8), bool(what & 16))
    session = session_of(command, _CERTIFICATES[what >> 5 & 3], _service(what), rules)
    if not session.checked_roles:
        raise BrokenRuleError("a session without a role")
    session.renew(session.watched)
    FIGURES["accepted"] += 1


def _headers(what: int, body: bytes) -> None:
    lines = body.decode("utf-8", "surrogateescape").split("\n")
    headers = dict(line.partition(": ")[::2] for line in lines)
    _accepted(_service(what).authenticate_request(headers, _CERTIFICATES[what >> 3 & 3]))


def _key(what: int, body: bytes) -> None:
    source = "data:;base64," + base64.b64encode(body).decode()
    named = {"public_key": source} if what & 8 else {"secret_key": source}
    algorithm = ("RS256", "ES256", "RS512", "x")[what >> 4 & 3]
    provider = TokenProvider(TokenSettings(**named, public_algorithm=algorithm), _Clock())
    provider.authenticate(body, None)


_KINDS = (_signed, _raw, _curve, _passwords, _source, _connect, _headers, _key)


def _accepted(principal: Principal) -> None:
    FIGURES["accepted"] += 1
    if not isinstance(principal.role, str):
        raise BrokenRuleError("a role that is no text")
    principal.expired(NOW_MS)


def _url64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@cache
def _service_of(chosen: int) -> AuthenticationService:
    source = "data:;base64," + base64.b64encode(SECRET).decode()
    settings = TokenSettings(
        secret_key=source,
        claim="roles" if chosen & 1 else "sub",
        audience_claim="aud" if chosen & 2 else "",
        audience="here" if chosen & 2 else "",
    )
    users = b"u:$apr1$abcdefgh$YmgcbAhCPUKhfRPGDWYqf1\nc:abJnggxhB/yWI\n"
    basic = BasicProvider("data:;base64," + base64.b64encode(users).decode())
    providers = [TokenProvider(settings, _Clock()), basic, CertificateProvider()]
    role = "anonymous" if chosen & 2 else ""
    return AuthenticationService(providers, role, strict=bool(chosen & 1))


def _service(what: int) -> AuthenticationService:
    FIGURES["tokens"] += 1
    return _service_of(what >> 6 & 3)


@cache
def _curve_key() -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(0xF100D6A7E, ec.SECP256R1())


@cache
def _curve_provider() -> TokenProvider:
    public = (
        _curve_key()
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    source = "data:;base64," + base64.b64encode(public).decode()
    return TokenProvider(TokenSettings(public_key=source, public_algorithm="ES256"), _Clock())


def seeds() -> list[bytes]:
    """Return credentials of each kind."""
    claims = [json.dumps({"sub": one, "exp": one, "roles": one, "aud": "here"}) for one in CLAIMS]
    kinds = [kind | flag for kind in (SIGNED, CURVE) for flag in (0, 64, 128, 192)]
    tokens = [
        bytes((kind,)) + b"\0" + one.encode("utf-8", "surrogatepass")
        for kind in kinds
        for one in claims
    ]
    others = [bytes((SIGNED,)) + header + b'\0{"sub":"a"}' for header in _HEADERS]
    passwords = b"u:$apr1$abcdefgh$YmgcbAhCPUKhfRPGDWYqf1\nc:abJnggxhB/yWI\0password"
    sources = [
        b"env:HOME",
        b"data:;base64,YWJj",
        b"data:,a%20b",
        b"file:///nowhere",
        b"YWJj",
        b"/x\0",
    ]
    connect = pb.CommandConnect(
        client_version="x", auth_method_name="token", auth_data=b"x", original_principal="p",
        original_auth_data="y", original_auth_method="basic", proxy_version="z",
    )  # fmt: skip
    headers = (
        b"Authorization: Bearer x.y.z", b"Authorization: Basic dTpw",
        b"X-Pulsar-Auth-Method-Name: basic\nAuthorization: Basic dTpw",
    )  # fmt: skip
    public = (
        _curve_key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return [
        *tokens, *others, bytes((PASSWORDS,)) + passwords, bytes((RAW,)) + b"a.b.c",
        bytes((RAW | 8,)) + b"u:password", *(bytes((SOURCE,)) + one for one in sources),
        bytes((CONNECT | 16,)) + connect.SerializeToString(),
        *(bytes((HEADERS,)) + one for one in headers), bytes((KEY | 24,)) + public,
        bytes((KEY,)) + SECRET,
    ]  # fmt: skip


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Mutate claims, a CONNECT's fields, or bytes."""
    import atheris

    choices = random.Random(seed)
    what = data[0] % 8 if data else RAW
    if choices.random() < 0.5 or what not in (SIGNED, CURVE, CONNECT):
        return bytes(atheris.Mutate(data, most_bytes))
    if what == CONNECT:
        command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
        try:
            command.connect.ParseFromString(data[1:])
            whole = pb.BaseCommand.FromString(
                CommandMaker(choices).changed(command.SerializePartialToString())
            )
        except DecodeError:
            return bytes(atheris.Mutate(data, most_bytes))
        return (data[:1] + whole.connect.SerializePartialToString())[:most_bytes]
    names = ("sub", "exp", "nbf", "iat", "aud", "roles", "iss")
    claims = {choices.choice(names): choices.choice(CLAIMS) for _ in range(choices.randrange(5))}
    header = choices.choice(_HEADERS) if choices.random() < 0.3 else b""
    text = json.dumps(claims).encode("utf-8", "surrogatepass")
    return (data[:1] + header + b"\0" + text)[:most_bytes]
