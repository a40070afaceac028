"""The official Python client against the TLS ports of broker and proxy."""

import asyncio
from pathlib import Path

import pulsar
import pytest

from tests.support.certificates import PemFiles
from tests.support.processes.tls_servers import tls_broker, tls_proxy

pytestmark = pytest.mark.official

TOPIC = "persistent://public/default/secret"


async def there_and_back(
    url: str, pem: PemFiles, shows: tuple[str, str] | None = None, seconds: int = 60
) -> bytes:
    """Send and receive a message, by the blocking client in a thread."""
    return await asyncio.to_thread(_there_and_back, url, pem, shows, seconds)


def _there_and_back(url: str, pem: PemFiles, shows: tuple[str, str] | None, seconds: int) -> bytes:
    client = pulsar.Client(
        url,
        operation_timeout_seconds=seconds,
        tls_trust_certs_file_path=pem.trust,
        tls_validate_hostname=True,
        authentication=None if shows is None else pulsar.AuthenticationTLS(*shows),
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
    )
    try:
        consumer = client.subscribe(TOPIC, "s")
        client.create_producer(TOPIC).send(b"in secret")
        content: bytes = consumer.receive(1_000 * seconds).data()
        return content
    finally:
        client.close()


async def test_messages_pass_over_tls_to_the_broker_and_through_the_proxy(tmp_path: Path) -> None:
    pem = PemFiles(tmp_path)
    async with (
        tls_broker(pem) as broker,
        tls_proxy(broker, pem, brokerProxyAllowedTargetPorts="*") as proxy,
    ):
        for url in (broker.urls.service_tls, proxy.urls.service_tls, proxy.urls.service):
            assert await there_and_back(url, pem) == b"in secret"


async def test_only_a_client_with_the_required_certificate_is_served(tmp_path: Path) -> None:
    pem = PemFiles(tmp_path)
    strict = {"tlsTrustCertsFilePath": pem.trust, "tlsRequireTrustedClientCertOnConnect": "true"}
    async with tls_broker(pem, brokerServicePort="", **strict) as broker:
        pair = pem.pair("client", "a-client")
        assert await there_and_back(broker.urls.service_tls, pem, shows=pair) == b"in secret"
        with pytest.raises(pulsar.PulsarException):
            await there_and_back(broker.urls.service_tls, pem, seconds=1)
