"""The keys of authentication."""

import pytest

from broker.configuration.config import BrokerConfig
from proxy.config import ProxyConfig
from server.configuration.authentication import (
    AuthenticationSettings,
    literal_refusal,
    with_token_prefix,
)
from server.errors import ConfigError
from tests.support.authentication.credentials import PACKAGE

ON = {"authenticationEnabled": "true", "authenticationProviders": f"{PACKAGE}Token"}
# Keys of upstream that Floodgate does not read, not from a file either.
UNREAD = {"brokerClientTlsKeyStorePassword", "bookkeeperClientAuthenticationParameters"}


def settings(**keys: str) -> AuthenticationSettings:
    made = BrokerConfig.from_properties({**ON, "tokenSecretKey": "file:///k", **keys})
    assert made.authentication is not None
    return made.authentication


def test_without_authentication_enabled_there_are_no_settings() -> None:
    assert BrokerConfig.from_properties({"tokenSecretKey": "file:///k"}).authentication is None


def test_token_and_session_keys_become_settings() -> None:
    found = settings(
        tokenAuthClaim="role",
        tokenAudienceClaim="aud",
        tokenAudience="us",
        tokenAllowedClockSkewSeconds="7",
        anonymousUserRole="any",
        strictAuthMethod="true",
        authenticationRefreshCheckSeconds="5",
        authenticateOriginalAuthData="true",
    )
    token = found.token
    assert token is not None
    assert (found.methods, found.anonymous_role, found.strict) == (("token",), "any", True)
    assert (found.refresh_seconds, found.checks_original) == (5, True)
    assert (token.claim, token.audience_claim, token.audience) == ("role", "aud", "us")
    assert (token.secret_key, token.skew_seconds, token.public_algorithm) == (
        "file:///k", 7, "RS256",
    )  # fmt: skip


def test_a_proxy_forwards_credentials_and_protects_its_metrics_if_configured() -> None:
    keys = {**ON, "tokenSecretKey": "file:///k", "brokerServiceURL": "pulsar://b:1"}
    made = ProxyConfig.from_properties({**keys, "forwardAuthorizationCredentials": "true"})
    assert made.authentication is not None
    assert made.authentication.forwards_credentials
    assert made.authentication.covers_metrics


def test_with_a_prefix_only_prefixed_token_keys_count() -> None:
    found = with_token_prefix(
        {"tokenSettingPrefix": "my", "tokenAuthClaim": "a", "mytokenSecretKey": "b", "x": "y"}
    )
    assert found == {"tokenSettingPrefix": "my", "tokenSecretKey": "b", "x": "y"}


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"tokenSecretKey": ""}, "tokenSecretKey and tokenPublicKey are missing"),
        ({"tokenAudienceClaim": "aud"}, "tokenAudienceClaim without tokenAudience"),
        ({"tokenAllowedClockSkewSeconds": "-1"}, "tokenAllowedClockSkewSeconds='-1'"),
        ({"tokenPublicAlg": "EdDSA"}, "tokenPublicAlg='EDDSA'"),
        ({"authenticationProviders": "com.example.Mine"}, "authenticationProviders='com.ex"),
        ({"authenticationProviders": f"{PACKAGE}Basic"}, "basicAuthConf is missing"),
        ({"authenticationProviders": ""}, "authenticationEnabled=true without"),
    ],
)
def test_an_invalid_authentication_setting_is_named(keys: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**keys)
    assert any(one.startswith(named) for one in caught.value.problems)


@pytest.mark.parametrize(
    ("key", "value", "refused"),
    [
        ("tokenSecretKey", "c2VjcmV0", True),
        ("mytokenSecretKey", "data:;base64,c2VjcmV0", True),
        ("brokerClientAuthenticationParameters", "token:abc", True),
        ("tokenSecretKey", "file:///etc/key", False),
        ("tokenSecretKey", "/etc/key", False),
        ("tokenSecretKey", "env:KEY", False),
        ("tokenPublicKey", "data:;base64,c2VjcmV0", False),
        ("tokenSecretKey", "", False),
        ("metadataStoreUrl", "postgresql://u:s3cret@h/d", True),
        ("floodgateMetadataStoreUrl", "postgresql://u@h/d?password=s3cret", True),
        ("metadataStoreUrl", "postgresql://u@h:5432/d?host=/run/postgresql", False),
        ("metadataStoreUrl", "file:///etc/url", False),
        ("brokerServiceURL", "pulsar://h:6650", False),
        ("metadataStoreUrl", "postgresql://ann:planted@h/d", True),
        ("metadataStoreUrl", "postgresql://h/d?user=ann&password=planted", True),
        ("metadataStoreUrl", "postgresql://ann@h:5432/d", False),
        ("brokerServiceURL", "pulsar://a:1,b:2", False),
        ("brokerClientTlsKeyStorePassword", "planted", True),
        ("bookkeeperClientAuthenticationParameters", "planted", True),
        ("tokenSecretKey", "env:NAME", False),
        ("clusterName", "planted", False),
    ],
)
def test_a_literal_secret_is_refused_on_a_command_line_with_a_remedy(
    key: str, value: str, refused: bool
) -> None:
    said = literal_refusal(key, value)
    assert (said is not None) is refused
    if said is not None:
        assert value not in said
        assert "planted" not in said
        assert "configuration file" in said
        assert ("file:///path" in said) is (key not in UNREAD)


def test_the_repr_of_settings_shows_no_secret() -> None:
    secret = "data:;base64,c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
    assert secret not in repr(settings(tokenSecretKey=secret))
