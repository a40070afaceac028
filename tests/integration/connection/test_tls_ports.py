"""The TLS ports of broker and proxy, beside plain ones and alone."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest

from client.authentication.tls import AuthenticationTLS
from client.client import Client
from client.exceptions import ConnectError, PulsarException
from tests.support.certificates import PemFiles
from tests.support.processes.cluster import until
from tests.support.processes.tls_servers import tls_broker, tls_proxy

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "persistent://public/default/secret"
LOOKUP = "/lookup/v2/topic/persistent/public/default/secret"
ALONE = {"brokerServicePort": "", "webServicePort": ""}


@pytest.fixture
def pem(tmp_path: Path) -> PemFiles:
    return PemFiles(tmp_path / "pem")


def client(url: str, pem: PemFiles, **options: object) -> Client:
    return Client(
        url,
        tls_trust_certs_file_path=pem.trust,
        tls_validate_hostname=True,
        **options,  # type: ignore[arg-type]
    )


async def there_and_back(own: Client) -> None:
    async with own:
        consumer = await own.subscribe(TOPIC, "s")
        producer = await own.create_producer(TOPIC)
        await producer.send(b"in secret")
        assert (await consumer.receive()).data() == b"in secret"
        await consumer.close()


def trusting(pem: PemFiles, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pem.trust)
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


async def asked(url: str, context: ssl.SSLContext) -> dict[str, str]:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        assert answer.status == 200
        found: dict[str, str] = await answer.json()
        return found


async def test_plain_and_tls_ports_serve_side_by_side(pem: PemFiles) -> None:
    async with tls_broker(pem) as broker:
        urls = broker.urls
        # Then
        assert [url.partition("://")[0] for url in urls.told()] == [
            "pulsar",
            "http",
            "pulsar+ssl",
            "https",
        ]
        await there_and_back(client(urls.service_tls, pem))
        await there_and_back(Client(urls.service))
        for web in (urls.web, urls.web_tls):
            found = await asked(web + LOOKUP, trusting(pem))
            assert found == {
                "brokerUrl": urls.service,
                "brokerUrlTls": urls.service_tls,
                "httpUrl": urls.web,
                "httpUrlTls": urls.web_tls,
                "nativeUrl": urls.service,
                "brokerUrlSsl": "",
            }
        # As a real broker: the leader is named by TLS alone
        leader = await asked(f"{urls.web}/admin/v2/brokers/leaderBroker", trusting(pem))
        assert leader["serviceUrl"] == urls.web_tls
        assert leader["brokerId"] == urls.web.removeprefix("http://")
        cluster = await asked(f"{urls.web}/admin/v2/clusters/standalone", trusting(pem))
        assert cluster["serviceUrlTls"] == urls.web_tls
        assert cluster["brokerServiceUrlTls"] == urls.service_tls
        assert broker.handshakes.finished_total > 0


async def test_what_goes_past_the_queue_is_encrypted_too(pem: PemFiles) -> None:
    # Given: a listing that is there already is answered at once
    async with (
        tls_broker(pem) as broker,
        client(broker.urls.service_tls, pem, operation_timeout_seconds=2) as own,
        await own.create_producer(TOPIC),
    ):
        # When
        found = [(await own.topics_of_namespace("public/default")).topics for _ in range(2)]
        # Then
        assert found == [(TOPIC,), (TOPIC,)]


async def test_a_broker_may_have_no_plain_port(pem: PemFiles) -> None:
    async with tls_broker(pem, **ALONE) as broker:
        # Then
        assert broker.urls.told() == [broker.urls.service_tls, broker.urls.web_tls]
        await there_and_back(client(broker.service_url, pem))
        found = await asked(broker.web_service_url + LOOKUP, trusting(pem))
        assert set(found) == {"brokerUrlTls", "httpUrlTls", "brokerUrlSsl"}


async def test_a_proxy_speaks_tls_on_both_sides_and_shows_its_certificate(pem: PemFiles) -> None:
    # Given
    strict = {"tlsTrustCertsFilePath": pem.trust, "tlsRequireTrustedClientCertOnConnect": "true"}
    certificate, key = pem.pair("proxy", "a-proxy")
    shown = {"brokerClientCertificateFilePath": certificate, "brokerClientKeyFilePath": key}
    async with (
        tls_broker(pem, **ALONE, **strict) as broker,
        tls_proxy(
            broker,
            pem,
            brokerProxyAllowedTargetPorts="*",
            **shown,
        ) as proxy,
    ):
        # Then
        await there_and_back(client(proxy.urls.service_tls, pem))
        await there_and_back(Client(proxy.urls.service))
        for web in (proxy.urls.web, proxy.urls.web_tls):
            found = await asked(web + LOOKUP, trusting(pem))
            assert found["brokerUrlTls"] == broker.urls.service_tls


async def test_a_proxy_does_not_speak_to_a_broker_it_does_not_trust(
    pem: PemFiles, tmp_path: Path
) -> None:
    # Given
    other = PemFiles(tmp_path / "other")
    async with (
        tls_broker(other) as broker,
        tls_proxy(broker, pem) as proxy,
        client(proxy.urls.service_tls, pem, operation_timeout_seconds=1) as own,
    ):
        # Then
        with pytest.raises(PulsarException, match="CERTIFICATE_VERIFY_FAILED"):
            await own.get_topic_partitions(TOPIC)


async def test_who_must_show_a_certificate_and_has_none_stays_outside(pem: PemFiles) -> None:
    # Given
    strict = {"tlsTrustCertsFilePath": pem.trust, "tlsRequireTrustedClientCertOnConnect": "true"}
    pair = pem.pair("client", "a-client")
    async with tls_broker(pem, **strict) as broker:
        # When
        async with client(broker.urls.service_tls, pem) as nobody:
            with pytest.raises(ConnectError):
                await nobody.get_topic_partitions(TOPIC)
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await asked(broker.urls.web_tls + LOOKUP, trusting(pem))
        # Then
        known = AuthenticationTLS(*pair)
        await there_and_back(client(broker.urls.service_tls, pem, authentication=known))
        await asked(broker.urls.web_tls + LOOKUP, trusting(pem, pair))
        assert broker.handshakes.failed_total > 0


async def test_new_certificates_need_no_restart(pem: PemFiles, tmp_path: Path) -> None:
    # Given
    async with tls_broker(pem, tlsCertRefreshCheckDurationSec="0") as broker:
        await there_and_back(client(broker.urls.service_tls, pem))
        # When: another authority signs the same files anew
        renewed = PemFiles(tmp_path / "pem")
        # Then
        await there_and_back(client(broker.urls.service_tls, renewed))
        await asked(broker.urls.web_tls + LOOKUP, trusting(renewed))


async def test_a_scrape_tells_of_handshakes_and_certificates(pem: PemFiles) -> None:
    async with tls_broker(pem) as broker:
        await there_and_back(client(broker.urls.service_tls, pem))
        # When
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{broker.urls.web_tls}/metrics/", ssl=trusting(pem)) as answer,
        ):
            text = await answer.text()
        # Then
        assert 'floodgate_tls_handshakes{cluster="standalone"} 0.0' in text
        for outcome, total in (("finished", broker.handshakes.finished_total), ("failed", 0)):
            sample = f'handshakes_ended_total{{cluster="standalone",outcome="{outcome}"}}'
            assert f"floodgate_tls_{sample} {total}.0" in text
        for of in ("binary_port", "web_port"):
            sample = f'refreshes_total{{cluster="standalone",of="{of}",outcome="used"}} 0.0'
            assert f"floodgate_tls_{sample}" in text


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(1024):
            pass


@pytest.mark.parametrize("port", ["service_tls", "web_tls"])
async def test_a_handshake_that_stops_half_way_is_ended(pem: PemFiles, port: str) -> None:
    # Given
    async with tls_broker(pem, floodgateTlsHandshakeTimeoutMs="50") as broker:
        reader, writer = await connect(getattr(broker.urls, port))
        # When: the head of a record, and no more
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        # Then
        await ended(reader)
        writer.close()
        assert broker.handshakes.timed_out_total == (port == "service_tls")
        # Then: a client that was faster stays
    assert broker.connection_counters.closed_total == 0


async def test_what_is_no_tls_is_closed_and_disturbs_nobody(pem: PemFiles) -> None:
    # Given
    async with tls_broker(pem) as broker:
        reader, writer = await connect(broker.urls.service_tls)
        # When
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        # Then
        await ended(reader)
        writer.close()
        await until(lambda: broker.handshakes.failed_total == 1)
        await there_and_back(client(broker.urls.service_tls, pem))


async def test_a_drain_does_not_wait_for_a_handshake(pem: PemFiles) -> None:
    # Given
    async with tls_broker(pem, floodgateTlsHandshakeTimeoutMs="600000") as broker:
        reader, writer = await connect(broker.urls.service_tls)
        await until(lambda: broker.handshakes.under_way == 1)
    # Then
    await ended(reader)
    writer.close()
