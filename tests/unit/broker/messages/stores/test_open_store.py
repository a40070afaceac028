"""The choice of a message store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.configuration.config import BrokerConfig
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.position import EARLIEST
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.open_store import message_store_for
from limiter.clock import LoopClock
from tests.support.stores.message_stores import TOPIC, filled, opened

if TYPE_CHECKING:
    from pathlib import Path


def test_messages_are_in_memory_unless_another_store_is_named() -> None:
    # When
    store = message_store_for(BrokerConfig.from_properties({}), LoopClock())
    # Then
    assert isinstance(store, MemoryMessageStore)
    assert store.figures().bounds.process > 0


@pytest.mark.parametrize("option", ["", "?fsync=true"])
async def test_a_log_on_disk_is_there_after_a_restart(tmp_path: Path, option: str) -> None:
    # Given
    url = f"log://{tmp_path}/log{option}"
    config = BrokerConfig.from_properties({"floodgateMessageStore": url})
    async with opened(message_store_for(config, LoopClock())) as store:
        await filled(await store.open_ledger(TOPIC), 3)
        figures = store.figures()
        # Then: a second broker is refused meanwhile.
        with pytest.raises(MessageStoreError, match="is in use by process"):
            await message_store_for(config, LoopClock()).open()
    # When
    async with opened(message_store_for(config, LoopClock())) as store:
        # Then
        assert (await store.open_ledger(TOPIC)).read(EARLIEST, 9, 99)[2].data == b"entry 2"
    assert (figures.entries, figures.data_bytes, figures.files) == (3, 21, 1)
    assert figures.writing is not None
    assert figures.writing.written_bytes == figures.file_bytes > 21
    assert (figures.writing.syncs > 0) is bool(option)
