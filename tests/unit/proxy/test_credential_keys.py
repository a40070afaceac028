"""The proxy's credential keys about certificates."""

import pytest

from proxy.config import ProxyConfig
from proxy.credentials import broker_credentials
from server.configuration.authentication import literal_refusal
from server.errors import ConfigError

TLS = {
    "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationTls",
    "brokerServiceURLTLS": "pulsar+ssl://b:1",
    "tlsEnabledWithBroker": "true",
}
PARAMETERS = "brokerClientAuthenticationParameters"
FILES = {"brokerClientCertificateFilePath": "/a.pem", "brokerClientKeyFilePath": "/a.key"}


@pytest.mark.parametrize("more", [{PARAMETERS: "tlsCertFile:/a.pem,tlsKeyFile:/a.key"}, FILES])
def test_a_client_certificate_is_configured_by_plugin_parameters_or_by_file_keys(more) -> None:
    config = ProxyConfig.from_properties({**TLS, **more})
    shown = broker_credentials(config.broker_credentials)
    assert shown is not None
    assert (shown.method_name, shown.auth_data()) == ("tls", b"")
    assert config.broker_tls is not None
    assert (config.broker_tls.files.certificate, config.broker_tls.files.key) == (
        "/a.pem",
        "/a.key",
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (TLS, "wants a certificate: name it by"),
        ({**TLS, PARAMETERS: "tlsCertFile:/a.pem"}, "expected tlsCertFile:/path,tlsKeyFile:/path"),
        (
            {**TLS, "tlsEnabledWithBroker": "false", "brokerServiceURL": "pulsar://b:1"},
            "set tlsEnabledWithBroker=true",
        ),
    ],
)
def test_tls_authentication_without_a_complete_certificate_or_without_tls_is_refused(
    keys: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        ProxyConfig.from_properties(keys)


def test_certificate_paths_are_allowed_on_the_command_line_but_a_token_is_refused() -> None:
    assert literal_refusal(PARAMETERS, "tlsCertFile:/a.pem,tlsKeyFile:/a.key") is None
    assert literal_refusal(PARAMETERS, "token:tlsCertFile:/a.pem") is not None
