"""TLS clients at a forwarder in front of Floodgate's proxy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from client.authentication.tls import AuthenticationTLS
from client.client import Client
from client.exceptions import ConnectError
from tests.integration.client.server import only_here
from tests.support.peers.tls_forwarder import Certificates, tls_forwarder
from tests.support.processes.cluster import cluster

pytestmark = only_here("TLS is a forwarder's here; see the proof client_credentials")

TOPIC = "persistent://public/default/secret"


@asynccontextmanager
async def forwarded(
    certificates: Certificates, *, asks_for_certificate: bool = False
) -> AsyncIterator[str]:
    async with (
        cluster({"public/default": [TOPIC]}) as parts,
        tls_forwarder(
            parts.proxy.service_url, certificates, asks_for_certificate=asks_for_certificate
        ) as url,
    ):
        yield url


async def test_messages_are_published_and_received_over_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    async with (
        forwarded(certificates) as url,
        Client(
            url, tls_trust_certs_file_path=certificates.trust, tls_validate_hostname=True
        ) as client,
    ):
        consumer = await client.subscribe(TOPIC, "s")
        producer = await client.create_producer(TOPIC)
        await producer.send(b"in secret")
        message = await consumer.receive()
        assert message.data() == b"in secret"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "self-signed certificate in certificate chain"),
        ({"trusts": True, "hostname": True}, "certificate is not valid for '127.0.0.1'"),
    ],
    ids=["not trusted", "another host's name"],
)
async def test_an_untrusted_certificate_or_host_is_refused(tmp_path, arguments, reason) -> None:
    certificates = Certificates(tmp_path, server_name="elsewhere.example")
    trusted = certificates.trust if arguments.get("trusts") else None
    hostname = arguments.get("hostname", False)
    async with (
        forwarded(certificates) as url,
        Client(url, tls_trust_certs_file_path=trusted, tls_validate_hostname=hostname) as client,
    ):
        with pytest.raises(ConnectError, match=reason):
            await client.get_topic_partitions(TOPIC)


@pytest.mark.parametrize("trusts", [True, False])
async def test_without_checks_any_certificate_is_accepted(tmp_path: Path, *, trusts: bool) -> None:
    certificates = Certificates(tmp_path, server_name="elsewhere.example")
    arguments: dict[str, object] = (
        {"tls_trust_certs_file_path": certificates.trust}
        if trusts
        else {"tls_allow_insecure_connection": True}
    )
    async with forwarded(certificates) as url, Client(url, **arguments) as client:
        assert await client.get_topic_partitions(TOPIC) == [TOPIC]


@pytest.mark.parametrize("how", ["authentication", "files", "none"])
async def test_a_required_client_certificate_must_be_configured(tmp_path: Path, how: str) -> None:
    certificates = Certificates(tmp_path)
    certificate, key = certificates.client
    arguments: dict[str, object] = {
        "authentication": {"authentication": AuthenticationTLS(certificate, key)},
        "files": {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key},
        "none": {},
    }[how]
    async with (
        forwarded(certificates, asks_for_certificate=True) as url,
        Client(url, tls_trust_certs_file_path=certificates.trust, **arguments) as client,
    ):
        if how == "none":
            with pytest.raises(ConnectError):
                await client.connect()
        else:
            assert await client.get_topic_partitions(TOPIC) == [TOPIC]
