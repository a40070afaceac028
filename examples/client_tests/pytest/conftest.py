"""Fixtures for tests of a Pulsar client: a broker for all of them, a namespace for each.

``FLOODGATE_BROKER`` names the program if ``floodgate-broker`` is not on the path.
"""

from __future__ import annotations

import os
import subprocess
import urllib.request
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulsar
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {
    "brokerServicePort": "0",  # any free one
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "forceDeleteNamespaceAllowed": "true",
}


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    service_url: str
    admin_url: str

    def admin(self, method: str, path: str, body: bytes = b"{}") -> None:
        """Send a request to the admin REST API."""
        url = f"{self.admin_url}/admin/v2/{path}"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)):
            pass


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Run a broker for all tests; it is ready when it says so."""
    command = [os.environ.get("FLOODGATE_BROKER", "floodgate-broker")]
    for key, value in SETTINGS.items():
        command += ["--set", f"{key}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready, _, service_url, admin_url = process.stdout.readline().split()
        assert ready == "READY"
        yield Broker(service_url, admin_url)
        process.terminate()


@pytest.fixture
def namespace(broker: Broker) -> Iterator[str]:
    """Have a namespace for one test; topics, messages and clients in it are gone afterwards."""
    name = f"public/test-{uuid.uuid4().hex[:8]}"
    broker.admin("PUT", f"namespaces/{name}")
    yield name
    broker.admin("DELETE", f"namespaces/{name}?force=true")


@pytest.fixture
def client(broker: Broker) -> Iterator[pulsar.Client]:
    """Have a client."""
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(broker.service_url, logger=quiet)
    yield client
    client.close()


@pytest.fixture
def clean_default(broker: Broker) -> str:
    """Have an empty public/default, for code that names its topics itself."""
    broker.admin("DELETE", "namespaces/public/default?force=true")
    broker.admin("PUT", "namespaces/public/default")
    return "public/default"
