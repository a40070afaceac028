"""Every message store, for the tests that all of them have to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.stores.message_stores import KINDS, message_store, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from broker.messages.managed_ledger import MessageStore


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MessageStore]:
    """An open store whose ledgers have five entries."""
    async with opened(message_store(request.param, tmp_path)) as one:
        yield one
