"""The client tests' server, in this process or named by the environment.

``PULSAR_SERVICE_URL`` and ``PULSAR_WEB_URL`` name a server of any make, and ``PULSAR_PROXY_URL`` a
proxy in front of it.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import aiohttp
import pytest

from client.client import Client
from limiter.clock import LoopClock
from tests.support.processes.cluster import cluster

SERVICE_URL, WEB_URL, PROXY_URL = "PULSAR_SERVICE_URL", "PULSAR_WEB_URL", "PULSAR_PROXY_URL"
IS_NAMED = SERVICE_URL in os.environ


def only_here(reason: str) -> pytest.MarkDecorator:
    """Skip a test or a parameter with the environment's server."""
    return pytest.mark.skipif(IS_NAMED, reason=f"not by URL: {reason}")


_PROXY_IS_MISSING = pytest.mark.skipif(
    IS_NAMED and PROXY_URL not in os.environ, reason=f"{PROXY_URL} names no proxy"
)
ROLES = pytest.mark.parametrize("role", ["broker", pytest.param("proxy", marks=_PROXY_IS_MISSING)])


@dataclass(frozen=True)
class Server:
    """A server.

    Attributes:
        service_url: Address for clients.
        web_url: The broker's admin REST.
        namespace: Not shared between tests.
    """

    service_url: str
    web_url: str
    namespace: str = "public/default"

    def topic(self, name: str = "t") -> str:
        return f"persistent://{self.namespace}/{name}"

    async def ask(self, method: str, path: str, body: object = None) -> None:
        async with aiohttp.ClientSession() as session:
            headers = {"Content-Type": "application/json"}
            url = f"{self.web_url}/admin/v2/{path}"
            data = None if body is None else json.dumps(body)
            async with session.request(method, url, data=data, headers=headers) as answer:
                assert answer.ok, f"{method} {path}: {answer.status} {await answer.text()}"

    async def create(self, *names: str, partitions: int | None = None) -> None:
        """Create topics; each of so many partitions, if told."""
        end = "" if partitions is None else "/partitions"
        for name in names:
            path = f"persistent/{self.namespace}/{name}{end}"
            await self.ask("PUT", path, partitions)

    async def delete(self, name: str) -> None:
        """Delete a topic, even while in use."""
        await self.ask("DELETE", f"persistent/{self.namespace}/{name}?force=true")


@asynccontextmanager
async def served(
    role: str = "broker", keys: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """Run a server for a block.

    Args:
        role: Whether clients talk to the broker or to a proxy.
        keys: Of the in-process broker, to save time; a named server keeps its own.
    """
    if IS_NAMED:
        url = os.environ[SERVICE_URL if role == "broker" else PROXY_URL]
        server = Server(url, os.environ[WEB_URL], f"public/client-{uuid4().hex}")
        await server.ask("PUT", f"namespaces/{server.namespace}")
        yield server
        return
    # Retries, delays and failovers of clients take their real time.
    async with cluster(topics={}, broker=keys, clock=LoopClock()) as parts:
        yield Server(parts.part(role).service_url, parts.broker.web_service_url)


async def lose_connections(client: Client) -> None:
    """Cut all connections of a client, as a network would."""
    for opening in list(client._pool._connections.values()):
        (await opening).abort()
