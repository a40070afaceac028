"""Configurations with TLS and tokens in deploy/secure, used as documented."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from client.authentication.authentication import AuthenticationToken
from client.client import Client
from client.exceptions import AuthenticationError, PulsarException
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from server.configuration.file import parse_properties
from tests.support.processes.compose import load_compose
from tests.support.processes.server_process import REPOSITORY

SECURE = REPOSITORY / "deploy" / "secure"
MADE = "/run/secrets"
LOCAL = {"bindAddress": "127.0.0.1", "advertisedAddress": "127.0.0.1"}
WEB = {"webServicePort": "0", "webServicePortTls": "0"}
COMPOSE = load_compose(REPOSITORY / "docker-compose.yml", {}, SECURE / "compose.yml")

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None,
    reason="openssl is not installed (Debian: apt-get install openssl).",
)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder filled by the script."""
    folder = tmp_path_factory.mktemp("made") / "secrets"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    command = ["sh", str(SECURE / "make-secrets.sh"), str(folder)]
    subprocess.run(command, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    return folder


def keys_of(role: str, folder: Path | str, **changed: str) -> dict[str, str]:
    text = (SECURE / f"{role}.conf").read_text(encoding="utf-8")
    conf = str(SECURE / f"{role}.conf")
    text = text.replace(MADE, str(folder)).replace(f"/etc/floodgate/{role}.conf", conf)
    return {**parse_properties(text, conf), **changed}


@asynccontextmanager
async def both(secrets: Path) -> AsyncIterator[tuple[BrokerService, ProxyService]]:
    """Run broker and proxy with their files; addresses and stores are local."""
    stores = {"metadataStoreUrl": "memory:local", "floodgateMessageStore": "memory"}
    keys = keys_of("broker", secrets, **LOCAL, **WEB, **stores, brokerServicePortTls="0")
    async with BrokerService(BrokerConfig.from_properties(keys)) as broker:
        named = {
            "brokerServiceURLTLS": broker.urls.service_tls,
            "brokerWebServiceURLTLS": broker.urls.web_tls,
            "brokerProxyAllowedTargetPorts": "*",
        }
        keys = keys_of("proxy", secrets, **LOCAL, **WEB, **named, servicePortTls="0")
        async with ProxyService(ProxyConfig.from_properties(keys)) as proxy:
            yield broker, proxy


def client(url: str, secrets: Path, token: str | None) -> Client:
    return Client(
        url,
        tls_trust_certs_file_path=str(secrets / "ca.pem"),
        tls_validate_hostname=True,
        authentication=AuthenticationToken(token) if token else None,
        operation_timeout_seconds=5,
    )


def healthy(url: str) -> bool:
    command = [sys.executable, str(REPOSITORY / "deploy" / "healthcheck.py"), url]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@needs_openssl
async def test_only_clients_with_an_authorized_token_are_served_over_tls(secrets: Path) -> None:
    async with both(secrets) as (broker, proxy):
        admin = f"file://{secrets}/admin.token"
        for server in (broker, proxy):
            # No plain port for clients
            assert server.urls.service == ""
            async with client(server.urls.service_tls, secrets, admin) as own:
                consumer = await own.subscribe("public/default/secret", "s")
                producer = await own.create_producer("public/default/secret")
                await producer.send(b"in secret")
                assert (await consumer.receive()).data() == b"in secret"
                await consumer.close()
            async with client(server.urls.service_tls, secrets, None) as nobody:
                with pytest.raises(AuthenticationError):
                    await nobody.get_topic_partitions("public/default/secret")
            # The proxy's own role has no permissions
            token = f"file://{secrets}/proxy.token"
            async with client(server.urls.service_tls, secrets, token) as other:
                with pytest.raises(PulsarException):
                    await other.get_topic_partitions("public/default/secret")
            # The images' health check needs no token
            for web in (server.urls.web, server.urls.web_tls):
                url = f"{web}/admin/v2/brokers/ready"
                assert await asyncio.to_thread(healthy, url)


@needs_openssl
def test_secret_files_are_not_accessible_to_other_users(secrets: Path) -> None:
    assert secrets.stat().st_mode & 0o777 == 0o700
    for name in ("ca.key", "admin.token"):
        assert (secrets / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_a_service_has_exactly_the_secrets_named_in_its_configuration(role: str) -> None:
    text = (SECURE / f"{role}.conf").read_text(encoding="utf-8")
    service = COMPOSE.services[role]
    named = set(re.findall(rf"{MADE}/([\w.-]+)$", text, re.MULTILINE))
    assert named == set(service.secrets)
    assert service.command[1] == f"/etc/floodgate/{role}.conf"
    assert f"./deploy/secure/{role}.conf:/etc/floodgate/{role}.conf:ro" in service.volumes
    assert all(name in COMPOSE.secrets for name in service.secrets)


@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_every_key_of_the_configurations_has_an_effect(role: str) -> None:
    keys = keys_of(role, MADE)
    config = (
        BrokerConfig.from_properties(keys)
        if role == "broker"
        else ProxyConfig.from_properties(keys)
    )
    assert [notice.sentence for notice in config.notices] == []
