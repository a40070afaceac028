"""A broker tells a proxy from its clients: both by certificate."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from broker.service import BrokerService
from client.authentication.tls import AuthenticationTLS
from client.client import Client
from server.authentication.providers import Principal
from server.authentication.requests import ORIGINAL_HEADER
from tests.support.certificates import PemFiles
from tests.support.processes.tls_servers import tls_broker, tls_proxy

TOPIC = "persistent://public/default/secret"
BY_CERTIFICATE = {
    "authenticationEnabled": "true",
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
    "tlsRequireTrustedClientCertOnConnect": "true",
}
PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationTls"


def asked_by(broker: BrokerService, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return a growing list of HTTP requests' roles and original principals."""
    noted: list[tuple[str, str]] = []
    service = broker.authentication
    assert service is not None
    authenticate = service.authenticate_request

    def noting(headers: Mapping[str, str], certificate: Mapping[str, object]) -> Principal:
        principal = authenticate(headers, certificate)
        noted.append((principal.role, headers.get(ORIGINAL_HEADER, "")))
        return principal

    monkeypatch.setattr(service, "authenticate_request", noting)
    return noted


async def test_a_broker_authenticates_the_proxy_and_its_client_by_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = PemFiles(tmp_path / "pem")
    keys = {**BY_CERTIFICATE, "tlsTrustCertsFilePath": pem.trust}
    certificate, key = pem.pair("gate", "gate")
    shown = {
        "brokerClientAuthenticationPlugin": PLUGIN,
        "brokerClientAuthenticationParameters": f"tlsCertFile:{certificate},tlsKeyFile:{key}",
    }
    ann = pem.pair("ann", "ann")
    context = ssl.create_default_context(cafile=pem.trust)
    context.load_cert_chain(*ann)
    async with (
        tls_broker(pem, **keys) as broker,
        tls_proxy(broker, pem, brokerProxyAllowedTargetPorts="*", **keys, **shown) as proxy,
        Client(
            proxy.urls.service_tls, AuthenticationTLS(*ann), tls_trust_certs_file_path=pem.trust
        ) as own,
        aiohttp.ClientSession() as session,
    ):
        noted = asked_by(broker, monkeypatch)
        # A lookup, a pipe, a forwarded request
        async with await own.create_producer(TOPIC) as producer:
            await producer.send(b"x")
            found = {cnx.session.checked_roles for cnx in broker.connections if cnx.session}
        url = f"{proxy.urls.web_tls}/admin/v2/clusters"
        async with session.get(url, ssl=context, headers={ORIGINAL_HEADER: "admin"}) as answer:
            status = answer.status
    assert found == {("gate", "ann")}
    assert (status, noted) == (200, [("gate", "ann")])
