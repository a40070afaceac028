"""TLS ports of broker and proxy, beside plain ports and alone."""

import asyncio
import json
import ssl
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import uvloop

from client.authentication.tls import AuthenticationTLS
from client.client import Client
from client.exceptions import ConnectError, PulsarException
from tests.support.certificates import PemFiles
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import until
from tests.support.processes.tls_servers import tls_broker, tls_proxy
from tools import record_tls

TOPIC = "persistent://public/default/secret"
RECORDED = Path(__file__).parents[2] / "data" / "tls.jsonl"
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


async def test_answers_that_bypass_the_outbound_queue_are_encrypted(pem: PemFiles) -> None:
    # A cached listing is answered immediately
    async with (
        tls_broker(pem) as broker,
        client(broker.urls.service_tls, pem, operation_timeout_seconds=2) as own,
        await own.create_producer(TOPIC),
    ):
        found = [(await own.topics_of_namespace("public/default")).topics for _ in range(2)]
        assert found == [(TOPIC,), (TOPIC,)]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
async def test_answers_and_refusals_equal_the_recording_of_a_real_broker(tmp_path: Path) -> None:
    pem = record_tls.write(tmp_path)
    async with tls_broker(pem, tlsTrustCertsFilePath=pem.trust) as broker:
        urls = broker.urls
        ports = [url.rpartition(":")[2] for url in (urls.service, urls.service_tls)]
        ports += [url.rpartition(":")[2] for url in (urls.web, urls.web_tls)]
        asked = record_tls.answers(
            record_tls.Ports(*map(int, ports)), record_tls.Certificates.in_folder(tmp_path)
        )
        found = await asyncio.to_thread(list, asked)
    assert found == [json.loads(line) for line in RECORDED.read_text().splitlines()]


def test_the_web_port_serves_tls_under_uvloop(pem: PemFiles) -> None:
    async def ask() -> None:
        async with tls_broker(pem) as broker:
            await asked(broker.urls.web_tls + LOOKUP, trusting(pem))
            assert broker.handshakes.finished_total == 1

    # Its transports differ from the tests' own loop's
    uvloop.run(ask())


async def test_a_broker_may_have_only_tls_ports(pem: PemFiles) -> None:
    async with tls_broker(pem, **ALONE) as broker:
        assert broker.urls.told() == [broker.urls.service_tls, broker.urls.web_tls]
        await there_and_back(client(broker.service_url, pem))
        found = await asked(broker.web_service_url + LOOKUP, trusting(pem))
        assert set(found) == {"brokerUrlTls", "httpUrlTls", "brokerUrlSsl"}


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_a_proxy_uses_tls_on_both_sides_and_sends_its_certificate(pem, profile) -> None:
    strict = {"tlsTrustCertsFilePath": pem.trust, "tlsRequireTrustedClientCertOnConnect": "true"}
    certificate, key = pem.pair("proxy", "a-proxy")
    shown = {"brokerClientCertificateFilePath": certificate, "brokerClientKeyFilePath": key}
    async with (
        tls_broker(pem, **ALONE, **strict, floodgateProfile=profile) as broker,
        tls_proxy(
            broker,
            pem,
            floodgateProfile=profile,
            brokerProxyAllowedTargetPorts="*",
            **shown,
        ) as proxy,
    ):
        await there_and_back(client(proxy.urls.service_tls, pem))
        await there_and_back(Client(proxy.urls.service))
        for web in (proxy.urls.web, proxy.urls.web_tls):
            found = await asked(web + LOOKUP, trusting(pem))
            assert found["brokerUrlTls"] == broker.urls.service_tls


async def test_a_proxy_refuses_a_broker_with_an_untrusted_certificate(pem, tmp_path) -> None:
    other = PemFiles(tmp_path / "other")
    async with (
        tls_broker(other) as broker,
        tls_proxy(broker, pem) as proxy,
        client(proxy.urls.service_tls, pem, operation_timeout_seconds=1) as own,
    ):
        with pytest.raises(PulsarException, match="CERTIFICATE_VERIFY_FAILED"):
            await own.get_topic_partitions(TOPIC)


async def test_a_client_without_the_required_certificate_is_refused(pem: PemFiles) -> None:
    strict = {"tlsTrustCertsFilePath": pem.trust, "tlsRequireTrustedClientCertOnConnect": "true"}
    pair = pem.pair("client", "a-client")
    async with tls_broker(pem, **strict) as broker:
        async with client(broker.urls.service_tls, pem) as nobody:
            with pytest.raises(ConnectError):
                await nobody.get_topic_partitions(TOPIC)
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await asked(broker.urls.web_tls + LOOKUP, trusting(pem))
        known = AuthenticationTLS(*pair)
        await there_and_back(client(broker.urls.service_tls, pem, authentication=known))
        await asked(broker.urls.web_tls + LOOKUP, trusting(pem, pair))
        assert broker.handshakes.failed_total > 0


async def test_renewed_certificates_are_used_with_no_restart(pem: PemFiles, tmp_path: Path) -> None:
    async with tls_broker(pem, tlsCertRefreshCheckDurationSec="0") as broker:
        await there_and_back(client(broker.urls.service_tls, pem))
        # Another authority signs the same files anew
        renewed = PemFiles(tmp_path / "pem")
        await there_and_back(client(broker.urls.service_tls, renewed))
        await asked(broker.urls.web_tls + LOOKUP, trusting(renewed))


@pytest.mark.parametrize("spoken", ["TLSv1.2", "TLSv1.3"])
async def test_each_port_accepts_the_tls_protocols_and_ciphers_of_its_own_keys(pem, spoken) -> None:
    # One port has a single TLS 1.2 cipher, in Java's spelling, and the other only TLS 1.3
    old = {"{}Protocols": "TLSv1.2", "{}Ciphers": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
    of_old, of_new = ("tls", "webServiceTls") if spoken == "TLSv1.2" else ("webServiceTls", "tls")
    keys = {key.format(of_old): value for key, value in old.items()}
    keys[f"{of_new}Protocols"] = "TLSv1.3"
    async with tls_broker(pem, **keys) as broker:
        found = {
            port: [await negotiated(url, context) for context in offers(pem)]
            for port, url in (("tls", broker.urls.service_tls), ("web", broker.urls.web_tls))
        }
    refused_here = {
        "TLSv1.2": [("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"), None, None],
        "TLSv1.3": [None, None, ("TLSv1.3", "TLS_AES_256_GCM_SHA384")],
    }
    other = "TLSv1.3" if spoken == "TLSv1.2" else "TLSv1.2"
    assert found == {"tls": refused_here[spoken], "web": refused_here[other]}


def offers(pem: PemFiles) -> list[ssl.SSLContext]:
    """Return clients with the TLS 1.2 cipher, another cipher, and TLS 1.3."""
    one, another, new = (trusting(pem) for _ in range(3))
    one.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    another.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    one.maximum_version = another.maximum_version = ssl.TLSVersion.TLSv1_2
    new.minimum_version = ssl.TLSVersion.TLSv1_3
    return [one, another, new]


async def negotiated(url: str, context: ssl.SSLContext) -> tuple[str, str] | None:
    """Return the protocol and cipher negotiated by client and port, or None."""
    host, _, port = url.partition("://")[2].rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    except (ssl.SSLError, ConnectionError):
        return None
    name, protocol, _ = writer.get_extra_info("cipher")
    spoken: str = writer.get_extra_info("ssl_object").version()
    assert protocol == spoken
    writer.close()
    return spoken, name


class Replaced:
    """A server's files during replacement, and a trust store for all of them."""

    def __init__(self, pem: PemFiles, folder: Path) -> None:
        self._pem = pem
        self._next = [PemFiles(folder / name) for name in ("second", "third")]
        self.trust = folder / "all.pem"
        self.trust.write_text("".join(Path(one.trust).read_text() for one in (pem, *self._next)))

    def broken(self) -> None:
        Path(self._pem.server[1]).write_text("half a fi")

    def renewed(self) -> None:
        for old, new in zip(self._pem.server, self._next.pop().server, strict=True):
            Path(new).replace(old)


async def test_clients_are_served_without_failures_while_certificates_change(pem, tmp_path) -> None:
    # Clients connect and leave all the time
    files = Replaced(pem, tmp_path)
    context = ssl.create_default_context(cafile=str(files.trust))
    served: asyncio.Queue[None] = asyncio.Queue()
    enough = asyncio.Event()

    async def come_and_go() -> None:
        while not enough.is_set():
            trusts = {"tls_trust_certs_file_path": str(files.trust)}
            async with Client(broker.urls.service_tls, **trusts) as own:  # type: ignore[arg-type]
                await own.get_topic_partitions(TOPIC)
            await asked(broker.urls.web_tls + LOOKUP, context)
            served.put_nowait(None)

    async def some_are_served() -> None:
        for _ in range(served.qsize() + 4):
            await served.get()

    async with tls_broker(pem, tlsCertRefreshCheckDurationSec="0") as broker:
        async with asyncio.TaskGroup() as clients:
            for _ in range(4):
                clients.create_task(come_and_go())
            for change in (files.broken, files.renewed, files.renewed):
                await some_are_served()
                change()
            await some_are_served()
            enough.set()
        # No client was refused, and broken files were not used
        assert broker.handshakes.failed_total == 0
        for tls in (broker.tls, broker.web_tls):
            assert tls is not None
            assert (tls.contexts.failed_total, tls.contexts.refreshed_total) == (1, 2)


async def test_metrics_show_tls_handshakes_and_certificates(pem: PemFiles) -> None:
    async with tls_broker(pem) as broker:
        await there_and_back(client(broker.urls.service_tls, pem))
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{broker.urls.web_tls}/metrics/", ssl=trusting(pem)) as answer,
        ):
            text = await answer.text()
        assert 'floodgate_tls_handshakes{cluster="standalone"} 0.0' in text
        for outcome, total in (("finished", broker.handshakes.finished_total), ("failed", 0)):
            sample = f'handshakes_ended_total{{cluster="standalone",outcome="{outcome}"}}'
            assert f"floodgate_tls_{sample} {total}.0" in text
        for of in ("binary_port", "web_port"):
            sample = f'refreshes_total{{cluster="standalone",of="{of}",outcome="used"}} 0.0'
            assert f"floodgate_tls_{sample}" in text
            sample = f'expires_timestamp_seconds{{cluster="standalone",of="{of}"}}'
            assert f"floodgate_tls_certificate_{sample}" in text


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ended(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(1024):
            pass


@pytest.mark.parametrize("port", ["service_tls", "web_tls"])
async def test_an_unfinished_tls_handshake_is_timed_out(pem: PemFiles, port: str) -> None:
    clock = ManualClock()
    async with tls_broker(pem, clock, floodgateTlsHandshakeTimeoutMs="50") as broker:
        reader, writer = await connect(getattr(broker.urls, port))
        # The head of a record, and no more
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        await until(lambda: broker.handshakes.under_way == 1)
        clock.advance(0.05)
        await ended(reader)
        writer.close()
        assert broker.handshakes.timed_out_total == 1
        # A faster client stays
    assert broker.connection_counters.closed_total == 0


async def test_plain_bytes_at_a_tls_port_close_only_that_connection(pem: PemFiles) -> None:
    async with tls_broker(pem) as broker:
        reader, writer = await connect(broker.urls.service_tls)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await ended(reader)
        writer.close()
        await there_and_back(client(broker.urls.service_tls, pem))
        assert broker.handshakes.failed_total == 1


@pytest.mark.parametrize("port", ["service_tls", "web_tls"])
async def test_a_drain_does_not_wait_for_a_handshake(pem: PemFiles, port: str) -> None:
    async with tls_broker(pem, floodgateTlsHandshakeTimeoutMs="600000") as broker:
        reader, writer = await connect(getattr(broker.urls, port))
        await until(lambda: broker.handshakes.under_way == 1)
    await ended(reader)
    writer.close()
