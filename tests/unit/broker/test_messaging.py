"""The choice of a message store."""

from pathlib import Path

import pytest

from broker.configuration.config import BrokerConfig
from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST
from broker.messages.stores.memory import MemoryMessageStore
from broker.messaging import message_store_for
from limiter.clock import LoopClock
from tests.support.stores.message_stores import TOPIC, filled, opened

STORE = "floodgateMessageStore"


def config_of(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties(properties)


def found(folder: Path) -> set[Path]:
    return set(folder.iterdir())


def test_the_memory_url_opens_a_message_store_in_memory() -> None:
    store = message_store_for(config_of(**{STORE: "memory"}), LoopClock())
    assert isinstance(store, MemoryMessageStore)
    assert store.figures().bounds.process > 0


@pytest.mark.parametrize("option", ["", "?fsync=true"])
async def test_messages_in_a_database_survive_a_restart(tmp_path: Path, option: str) -> None:
    config = config_of(**{STORE: f"sqlite://{tmp_path}/messages.db{option}"})
    async with opened(message_store_for(config, LoopClock())) as store:
        await filled(await store.open_ledger(TOPIC), 3)
        figures = store.figures()
        with pytest.raises(MessageStoreError, match="is in use by process"):
            await message_store_for(config, LoopClock()).open()
    async with opened(message_store_for(config, LoopClock())) as store:
        again = await store.open_ledger(TOPIC)
        assert (await again.fetch(EARLIEST, 9, 99))[2].data == b"entry 2"
    assert (figures.entries, figures.data_bytes) == (3, 21)
    assert figures.writing is not None
    assert figures.writing.written_bytes == 21
    assert figures.file_bytes > 21


async def test_a_temporary_database_is_deleted_on_close(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with opened(message_store_for(config_of(), LoopClock())) as store:
        await filled(await store.open_ledger(TOPIC), 3)
        assert store.identity.startswith("memory-")
        assert found(tmp_path)
    assert not found(tmp_path)


async def test_only_temporary_databases_of_killed_brokers_are_deleted_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed = tmp_path / "floodgate-messages-killed"
    starting = tmp_path / "floodgate-messages-starting"
    for folder, process in ((killed, "123"), (starting, "")):
        folder.mkdir()
        (folder / "messages.db.lock").write_text(process)
        (folder / "messages.db").touch()
    async with opened(message_store_for(config_of(), LoopClock())):
        living = found(tmp_path) - {starting}
        async with opened(message_store_for(config_of(), LoopClock())):
            assert living < found(tmp_path)
    assert found(tmp_path) == {starting}


async def test_a_missing_temporary_folder_is_reported_with_the_remedy(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    store = message_store_for(config_of(), LoopClock())
    with pytest.raises(MessageStoreError, match=r"missing: No such file .* floodgateMessageStore="):
        await store.open()
