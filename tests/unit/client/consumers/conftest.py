"""The consumers' broker, and a consumer without options."""

import pytest

from client.consumers.consumer import Consumer
from tests.support.peers.model_broker import ModelBroker
from tests.support.peers.model_consumers import opened


@pytest.fixture
async def broker() -> ModelBroker:
    return ModelBroker()


@pytest.fixture
async def consumer(broker: ModelBroker) -> Consumer:
    return await opened(broker)
