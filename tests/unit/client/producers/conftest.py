"""The producers' broker, and a producer without options."""

import pytest

from client.producers.producer import Producer
from tests.support.peers.scripted_broker import ScriptedBroker


@pytest.fixture
async def broker() -> ScriptedBroker:
    return ScriptedBroker()


@pytest.fixture
async def producer(broker: ScriptedBroker) -> Producer:
    return await broker.producer()
