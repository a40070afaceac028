"""The message stores under conformance tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.messages.stores.managed_ledger import MessageStore
from tests.support.stores.message_stores import KINDS, message_store, opened


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MessageStore]:
    """An open store whose ledgers have five entries."""
    async with opened(message_store(request.param, tmp_path)) as one:
        yield one
