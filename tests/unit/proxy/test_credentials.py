"""The proxy's credentials for brokers."""

from pathlib import Path

import pytest

from proxy.config import ProxyConfig
from proxy.credential_keys import BrokerCredentials
from proxy.credentials import ForwardedCredentials, OriginalClient, broker_credentials
from server.configuration.authentication import Source
from server.errors import ConfigError, StartError

PLUGIN = "org.apache.pulsar.client.impl.auth.Authentication"


@pytest.mark.parametrize(
    ("kind", "parameters", "shown"),
    [
        ("token", "token:abc", b"abc"),
        ("token", "abc", b"abc"),
        ("token", '{"token":"abc"}', b"abc"),
        ("basic", '{"userId":"ann","password":"pw"}', b"ann:pw"),
    ],
)
def test_authentication_parameters_are_read_in_pulsars_formats(kind, parameters, shown) -> None:
    found = broker_credentials(BrokerCredentials(kind, Source(parameters)))
    assert found is not None
    assert (found.method_name, found.auth_data()) == (kind, shown)


def test_a_token_file_is_read_again_for_every_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    found = broker_credentials(BrokerCredentials("token", Source(f"file://{file}")))
    assert found is not None
    for said in ("one", "two"):
        file.write_text(f"{said}\n")
        assert found.auth_data() == said.encode()


@pytest.mark.parametrize(("kind", "parameters"), [("token", "{"), ("basic", "ann:pw")])
def test_the_refusal_of_invalid_authentication_parameters_hides_the_password(
    kind: str, parameters: str
) -> None:
    with pytest.raises(StartError, match=r"^brokerClientAuthenticationParameters: ") as caught:
        broker_credentials(BrokerCredentials(kind, Source(parameters)))
    assert "pw" not in str(caught.value).replace("password", "")


def test_the_disabled_plugin_yields_no_broker_credentials() -> None:
    off = ProxyConfig.from_properties(
        {
            "brokerServiceURL": "pulsar://b:1",
            "brokerClientAuthenticationPlugin": f"{PLUGIN}Disabled",
        }
    )
    assert broker_credentials(off.broker_credentials) is None


def test_an_authentication_plugin_without_parameters_is_refused() -> None:
    with pytest.raises(ConfigError, match="brokerClientAuthenticationParameters is missing"):
        ProxyConfig.from_properties(
            {
                "brokerServiceURL": "pulsar://b:1",
                "brokerClientAuthenticationPlugin": f"{PLUGIN}Token",
            }
        )


def test_the_repr_of_a_client_hides_its_credentials() -> None:
    assert "hidden" not in repr(OriginalClient("ann", ForwardedCredentials("token", b"hidden")))
