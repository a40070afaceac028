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
def test_parameters_are_read_as_upstream_reads_them(kind, parameters, shown) -> None:
    found = broker_credentials(BrokerCredentials(kind, Source(parameters)))
    assert found is not None
    assert (found.method_name, found.auth_data()) == (kind, shown)


def test_a_file_is_read_at_every_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    found = broker_credentials(BrokerCredentials("token", Source(f"file://{file}")))
    assert found is not None
    for said in ("one", "two"):
        file.write_text(f"{said}\n")
        assert found.auth_data() == said.encode()


@pytest.mark.parametrize(("kind", "parameters"), [("token", "{"), ("basic", "ann:pw")])
def test_other_parameters_are_refused_unshown(kind: str, parameters: str) -> None:
    with pytest.raises(StartError, match=r"^brokerClientAuthenticationParameters: ") as caught:
        broker_credentials(BrokerCredentials(kind, Source(parameters)))
    assert "pw" not in str(caught.value).replace("password", "")


def test_without_a_plugin_there_are_none() -> None:
    off = ProxyConfig.from_properties(
        {
            "brokerServiceURL": "pulsar://b:1",
            "brokerClientAuthenticationPlugin": f"{PLUGIN}Disabled",
        }
    )
    assert broker_credentials(off.broker_credentials) is None


def test_a_plugin_without_parameters_is_refused() -> None:
    with pytest.raises(ConfigError, match="brokerClientAuthenticationParameters is missing"):
        ProxyConfig.from_properties(
            {
                "brokerServiceURL": "pulsar://b:1",
                "brokerClientAuthenticationPlugin": f"{PLUGIN}Token",
            }
        )


def test_a_clients_credentials_are_not_shown() -> None:
    assert "hidden" not in repr(OriginalClient("ann", ForwardedCredentials("token", b"hidden")))
