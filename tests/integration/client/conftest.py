"""The broker that the tests of the client talk to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest_asyncio

from client import Client
from tests.support.processes.cluster import cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

URL = "CLIENT_TESTS_SERVICE_URL"
"""Names a broker in the environment; without it the tests run one in this process."""


@pytest_asyncio.fixture
async def service_url() -> AsyncIterator[str]:
    """The URL of a broker; what this one made is closed before it."""
    if URL in os.environ:
        yield os.environ[URL]
        return
    async with cluster() as parts:
        yield parts.broker.service_url


@pytest_asyncio.fixture
async def client(service_url: str) -> AsyncIterator[Client]:
    """A client of that broker."""
    async with Client(service_url) as client:
        yield client
