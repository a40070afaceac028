"""The keys of authorization, of a broker and a proxy."""

import pytest

from broker.configuration.config import BrokerConfig
from proxy.config import ProxyConfig
from server.configuration.authorization import MULTI_ROLES_PROVIDER, AuthorizationSettings
from server.errors import ConfigError
from tests.unit.server.configuration.test_authentication import ON

KNOWN = {**ON, "tokenSecretKey": "file:///k"}
KEYS = {"authorizationEnabled": "true", "superUserRoles": "a, b"}
OF_BROKER = {**KNOWN, **KEYS, "proxyRoles": "p,q", "authorizationAllowWildcardsMatching": "true"}
OF_PROXY = {**KNOWN, **KEYS, "brokerServiceURL": "pulsar://b:1"}


def test_a_broker_has_superusers_proxy_roles_and_wildcards() -> None:
    found = BrokerConfig.from_properties(OF_BROKER).authorization
    assert found == AuthorizationSettings(frozenset("ab"), frozenset("pq"), wildcards=True)


def test_a_proxy_has_superusers_only() -> None:
    found = ProxyConfig.from_properties(OF_PROXY).authorization
    assert found == AuthorizationSettings(frozenset("ab"))


def test_without_authorization_enabled_there_are_no_settings() -> None:
    keys = {**OF_BROKER, "authorizationEnabled": "false", "authorizationProvider": "org.example.X"}
    assert BrokerConfig.from_properties(keys).authorization is None


def test_the_multi_roles_provider_counts_all_roles_of_a_token() -> None:
    keys = {**OF_BROKER, "authorizationProvider": MULTI_ROLES_PROVIDER}
    found = BrokerConfig.from_properties(keys).authorization
    assert found is not None
    assert found.multi_roles


@pytest.mark.parametrize("role", [BrokerConfig, ProxyConfig])
def test_authorization_without_authentication_is_refused(
    role: type[BrokerConfig | ProxyConfig],
) -> None:
    keys = KEYS if role is BrokerConfig else {**KEYS, "brokerServiceURL": "pulsar://b:1"}
    with pytest.raises(ConfigError, match=r"authorizationEnabled=true without authentication"):
        role.from_properties(keys)


def test_an_unknown_authorization_provider_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"authorizationProvider='org.example.Mine': no such"):
        BrokerConfig.from_properties({**OF_BROKER, "authorizationProvider": "org.example.Mine"})
