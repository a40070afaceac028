"""Tokens: signature, times, audience and role."""

import base64

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from server.authentication.providers import AuthenticationError
from server.authentication.service import AuthenticationService
from server.authentication.token import TokenProvider
from server.configuration.authentication import Source, TokenSettings
from server.errors import StartError
from tests.support.authentication.credentials import SECRET, token
from tests.support.clocks.manual_clock import ManualClock

NOW = 1000
RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def provider(**settings) -> TokenProvider:
    given = {"secret_key": source(SECRET), **settings}
    return TokenProvider(TokenSettings(**given), ManualClock(NOW))


def source(key: bytes) -> Source:
    return Source(f"data:;base64,{base64.b64encode(key).decode()}")


def public(key) -> str:
    return source(
        key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def private(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_a_token_provides_role_method_and_expiry() -> None:
    found = provider().authenticate(token(sub="ann", exp=NOW + 5), None)
    assert (found.role, found.method, found.expires_at_ms) == ("ann", "token", (NOW + 5) * 1000)
    assert found.roles == {"ann"}


def test_all_roles_of_a_list_claim_are_kept() -> None:
    found = provider(claim="roles").authenticate(token(roles=["a", "b"]), None)
    assert (found.role, found.roles) == ("a", {"a", "b"})


@pytest.mark.parametrize(("seconds", "holds"), [(-6, False), (-5, True), (0, True)])
def test_expiry_and_start_of_a_token_allow_for_the_clock_skew(seconds: int, holds: bool) -> None:
    late, early = token(sub="a", exp=NOW + seconds), token(sub="a", nbf=NOW - seconds)
    for one in (late, early):
        assert accepts(provider(skew_seconds=5), one) is holds


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS384"])
def test_a_public_rsa_key_verifies_the_algorithms_of_its_family_only(algorithm: str) -> None:
    checks = provider(secret_key=Source(), public_key=public(RSA))
    assert accepts(checks, token(private(RSA), algorithm, sub="a"))
    assert not accepts(checks, token(sub="a"))


def test_a_public_elliptic_curve_key_verifies_its_own_algorithm_only() -> None:
    checks = provider(secret_key=Source(), public_key=public(CURVE), public_algorithm="ES256")
    assert accepts(checks, token(private(CURVE), "ES256", sub="a"))
    assert not accepts(checks, token(private(RSA), sub="a", algorithm="RS256"))


@pytest.mark.parametrize(
    "settings",
    [
        {"secret_key": source(b"short")},
        {"secret_key": Source("file:///nowhere/at/all")},
        {"secret_key": Source(), "public_key": source(b"no key")},
        {"secret_key": Source(), "public_key": public(CURVE)},
        {"secret_key": Source(), "public_key": public(RSA), "public_algorithm": "ES256"},
    ],
)
def test_an_unusable_key_is_refused_at_the_start(settings) -> None:
    with pytest.raises(StartError, match=r"^token(Secret|Public)Key: "):
        provider(**settings)


def test_a_short_secret_verifies_only_algorithms_of_its_length() -> None:
    key = SECRET[:32]
    checks = provider(secret_key=source(key))
    assert accepts(checks, token(key, sub="a"))
    with pytest.warns(match="HMAC key"):
        long = token(key, "HS512", sub="a")
    assert not accepts(checks, long)


def test_a_refusal_quotes_no_part_of_the_token() -> None:
    shown = token(b"z" * 32, sub="ann").decode()
    with pytest.raises(AuthenticationError) as caught:
        provider().authenticate(shown.encode(), None)
    assert not any(part in caught.value.reason for part in shown.split("."))


@given(st.binary(max_size=200) | st.text('.{}[]"aA0-_=', max_size=80).map(str.encode))
def test_arbitrary_bytes_are_refused_as_a_token_without_further_errors(data: bytes) -> None:
    assert not accepts(CHECKS, data)


def test_deeply_nested_claims_are_refused() -> None:
    deep = jwt.PyJWS().encode(b"[" * 5000, SECRET, "HS256").encode()
    assert not accepts(CHECKS, deep)


CHECKS = provider()


def accepts(checks: TokenProvider, data: bytes) -> bool:
    try:
        checks.authenticate(data, None)
    except AuthenticationError:
        return False
    return True


def test_a_role_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="holds no role"):
        provider().authenticate(token(sub="ann\ud800"), None)
    with pytest.raises(AuthenticationError, match="holds no role"):
        provider(claim="roles").authenticate(token(roles=["ann\ud800"]), None)


def test_a_token_may_expire_beyond_the_range_of_a_float() -> None:
    checks = AuthenticationService([provider()])
    for exp in (10**400, "1" + "0" * 400, 1e308):
        assert checks.authenticate("token", token(sub="ann", exp=exp), None).role == "ann"
