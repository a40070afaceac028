"""Broker of the tests' producers."""

import pytest

from tests.support.peers.scripted_broker import ScriptedBroker


@pytest.fixture
async def broker() -> ScriptedBroker:
    return ScriptedBroker()
