"""The client tests' server, and its client."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from client import Client
from tests.integration.client.server import served


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with served() as server, Client(server.service_url) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/{uuid4().hex}"
