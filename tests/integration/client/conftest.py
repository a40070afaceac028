"""The client tests' server, and its client."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from client import Client
from tests.integration.client.server import Server, served


@pytest.fixture
def role() -> str:
    """The role of the server: the broker, or both in turn in tests marked by ROLES."""
    return "broker"


@pytest_asyncio.fixture
async def server(role: str) -> AsyncIterator[Server]:
    async with served(role) as server:
        yield server


@pytest_asyncio.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client(server.service_url) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/{uuid4().hex}"
