"""Cluster and import of the suite."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from loadgen.places.server_process import ServerLaunch, running_server
from tests.official_api.apis import APIS, Place, new_topic

_LOCAL = {
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "brokerServicePort": "0",
    # Short waits; an external broker has its own value.
    "delayedDeliveryTickTimeMillis": "100",
    "activeConsumerFailoverDelayTimeMillis": "0",
}


@pytest.fixture(scope="session")
def cluster_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URLs of the service and of the REST API."""
    if "PULSAR_SERVICE_URL" in os.environ:
        yield os.environ["PULSAR_SERVICE_URL"], os.environ["PULSAR_WEB_URL"]
        return
    log = tmp_path_factory.mktemp("official-api") / "broker.log"
    with running_server(ServerLaunch("broker", _LOCAL, log)) as server:
        yield server.service_url, server.web_url


@pytest.fixture(params=APIS)
def place(request: pytest.FixtureRequest, cluster_urls: tuple[str, str]) -> Place:
    """Return the cluster, with either import."""
    return Place(APIS[request.param], *cluster_urls)


@pytest.fixture
async def client(place: Place) -> AsyncIterator[Any]:
    """Return an open client of either import."""
    async with place.client() as opened:
        yield opened


@pytest.fixture
def topic() -> str:
    """Return the name of a new topic."""
    return new_topic()
