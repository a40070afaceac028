"""Broker of the tests' consumers."""

import pytest

from tests.support.peers.model_broker import ModelBroker


@pytest.fixture
async def broker() -> ModelBroker:
    return ModelBroker()
