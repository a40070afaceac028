"""A restart with the same ``--import`` keeps changes made at run time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.imports.importer import additions, fingerprint, import_at_start
from broker.service import BrokerService
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.stores.property_rows import PROPERTIES_TYPE
from broker.topics.properties import TopicProperties
from proto.names import NamespaceName, TopicName
from server.errors import StartError
from server.imports import Imports
from tests.support.processes.cluster import broker_config
from tests.support.stores.topic_stores import A, B, base, names

if TYPE_CHECKING:
    from pathlib import Path

    from broker.imports.staging import Lot
    from broker.stores.changes import NamespaceChanges

LISTED = ["p-partition-0", "p-partition-1", "q-partition-0", "t", "u"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgresql_url")
        return url
    return f"sqlite:///{tmp_path}/topics.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Topics of two namespaces, each described."""
    return write(tmp_path / "t.parquet", [str(A)] * len(LISTED), [base(name) for name in LISTED])


def write(path: Path, namespaces: list[str], topics: list[str]) -> Path:
    namespaces, topics = [*namespaces, str(B)], [*topics, f"persistent://{B}/b"]
    properties = pa.array([[("from", "file")]] * len(topics), PROPERTIES_TYPE)
    table = {"namespace": namespaces, "topic": topics, "properties": properties}
    pq.write_table(pa.table(table), path)
    return path


def in_folder(file: Path, folder: Path) -> Path:
    """Move a file into a new folder."""
    folder.mkdir()
    file.rename(folder / "part-0.parquet")
    return folder


def topic(name: str) -> TopicName:
    return TopicName.parse(base(name))


def started(store_url: str, imports: Imports) -> BrokerService:
    return BrokerService(broker_config({"metadataStoreUrl": store_url}), imports)


async def change_at_run_time(broker: BrokerService) -> None:
    properties = TopicProperties(broker.store)
    await broker.topics.delete(topic("t"))
    await broker.topics.delete_partitioned(topic("q"))
    await broker.topics.grow(topic("p"), 4)
    await properties.remove(topic("u"), "from")


async def test_changes_since_an_import_survive_a_restart_with_the_same_import(
    store_url: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(store_url, Imports([file])) as broker:
        await change_at_run_time(broker)
        listed = await names(broker.store)
    caplog.set_level(logging.INFO)
    async with started(store_url, Imports([file])) as broker:
        assert await names(broker.store) == listed
        assert dict((await broker.store.snapshot(A)).partitioned) == {base("p"): 4}
        assert await broker.store.properties(A, base("u")) == {}
    (line,) = [text for text in caplog.messages if str(file) in text]
    assert "was imported before" in line


async def test_an_imported_file_is_recognized_in_another_folder(store_url, file, tmp_path) -> None:
    async with started(store_url, Imports([file])) as broker:
        await broker.topics.delete(topic("t"))
    moved = in_folder(file, tmp_path / "elsewhere")
    async with started(store_url, Imports([moved])) as broker:
        assert base("t") not in await names(broker.store)


async def test_a_changed_import_file_adds_missing_topics(store_url: str, file: Path) -> None:
    async with started(store_url, Imports([file])) as broker:
        await change_at_run_time(broker)
    write(file, [str(A)] * 2, [base("t"), base("p-partition-1")])
    async with started(store_url, Imports([file])) as broker:
        assert base("t") in await names(broker.store)
        assert dict((await broker.store.snapshot(A)).partitioned) == {base("p"): 4}


async def test_an_imported_file_is_imported_again_on_request(store_url: str, file: Path) -> None:
    async with started(store_url, Imports([file])) as broker:
        await change_at_run_time(broker)
    async with started(store_url, Imports([file], again=True)) as broker:
        assert base("t") in await names(broker.store)
        counts = dict((await broker.store.snapshot(A)).partitioned)
        assert counts == {base("p"): 4, base("q"): 1}
        assert await broker.store.properties(A, base("u")) == {}


async def test_a_failed_import_is_completed_by_the_next_start(
    store_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_in_b(lot: Lot) -> list[NamespaceChanges]:
        if lot.names == [str(B)]:
            raise StoreError("the disk is full")
        return additions(lot)

    with monkeypatch.context() as patch:
        patch.setattr("broker.imports.staging.ROWS_PER_LOT", 1)
        patch.setattr("broker.imports.importer.additions", fails_in_b)
        with pytest.raises(StartError, match="the disk is full"):
            await started(store_url, Imports([file])).__aenter__()
    async with started(store_url, Imports([file])) as broker:
        assert len(await names(broker.store)) == len(LISTED)
        assert await names(broker.store, NamespaceName.parse(str(B))) == [f"persistent://{B}/b"]


async def test_a_file_changed_during_its_import_is_refused_and_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"

    class Replacing(MemoryStore):
        async def has_imported(self, fingerprint: str) -> bool:
            path.write_text(f"{base('another')}\n")
            return await super().has_imported(fingerprint)

    path.write_text(f"{base('t')}\n")
    content, store = fingerprint(path), Replacing()
    with pytest.raises(StartError, match="was changed while it was imported: import it again"):
        await import_at_start(store, Imports([path]))
    assert not await store.has_imported(content)
    assert await store.namespaces() == []


async def test_skipped_invalid_topics_are_counted_and_logged_line_by_line(tmp_path, caplog) -> None:
    (tmp_path / "t.txt").write_text(f"{base('t')}\nbroken\n")
    imports = Imports([tmp_path / "t.txt"], skip_invalid=True)
    async with started("memory:local", imports) as broker:
        assert await names(broker.store) == [base("t")]
    assert [text for text in caplog.messages if "--skip-invalid" in text] == [
        f"--skip-invalid: {tmp_path / 't.txt'}: 1 of 2 topics are invalid",
        "--skip-invalid: line 2: 'broken' is not a full topic name; expected "
        "persistent://tenant/namespace/topic",
    ]
