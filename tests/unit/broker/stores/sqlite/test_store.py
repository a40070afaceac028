"""The store on disk: persistence and memory."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from broker.stores.cached_store import SNAPSHOT_BYTES
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.memory import MemoryStore
from broker.stores.open_store import store_for_url
from broker.stores.sqlite import file as sqlite_file
from broker.stores.sqlite.file import SqliteFile
from broker.stores.sqlite.store import SqliteStore
from broker.stores.store import MetadataStore, NamespacePolicies
from proto.names import NamespaceName
from tests.support.stores import topic_stores
from tests.support.stores.topic_stores import A, changes, opened, topic, with_properties

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
APPLY_THEN_HANG = """
import asyncio, sys, time
from pathlib import Path
from broker.stores.sqlite.store import SqliteStore
from broker.stores.changes import TopicChanges
from proto.names import NamespaceName

async def main():
    store = SqliteStore(Path(sys.argv[1]), 1_000_000)
    await store.open()
    added = [b"persistent://tenant/a/t%d" % n for n in range(1000)]
    counts = {"persistent://tenant/a/part": 4}
    print(await store.apply(NamespaceName.parse("tenant/a"), TopicChanges(added, (), counts)))
    sys.stdout.flush()
    time.sleep(60)

asyncio.run(main())
"""


def sqlite(folder: Path) -> AbstractAsyncContextManager[MetadataStore]:
    return opened(topic_stores.sqlite(folder))


def killed_after_its_first_word(program: str, path: Path) -> str:
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )
    with child:
        word = child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    return word


async def test_an_acknowledged_change_survives_a_kill(tmp_path: Path) -> None:
    killed = killed_after_its_first_word(APPLY_THEN_HANG, tmp_path / "topics.db")
    assert killed == "1\n"
    async with sqlite(tmp_path) as store:
        snapshot = await store.snapshot(A)
        assert snapshot.version == 1
        assert len(snapshot.listing(PERSISTENT)) == 1_000
        assert dict(snapshot.partitioned) == {topic("part").decode(): 4}


async def test_a_change_that_cannot_be_written_is_not_visible(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with sqlite(tmp_path) as store:
        await store.apply(A, changes(topic("a")))
        feed = store.changes()
        with monkeypatch.context() as patch:
            patch.setattr(SqliteFile, "_insert_properties", full)
            with pytest.raises(StoreError):
                await store.apply(A, changes(topic("b")))
        assert [*(await store.snapshot(A)).listing(PERSISTENT).names()] == [topic("a").decode()]
        assert await store.apply(A, changes(topic("c"))) == 2
        feed.close()
        assert [change.version async for change in feed] == [2]
    async with sqlite(tmp_path) as store:
        assert len((await store.snapshot(A)).persistent) == 2


async def test_a_change_with_a_cancelled_caller_is_committed_and_published_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sqlite(tmp_path) as store:
        await store.apply(A, changes(topic("first")))
        feed, write = store.changes(), SqliteFile.write
        entered, go_on = threading.Event(), threading.Event()

        def slow_write(*args: object) -> object:
            entered.set()
            go_on.wait()
            return write(*args)

        monkeypatch.setattr(SqliteFile, "write", slow_write)
        leaving = asyncio.get_running_loop().create_task(store.apply(A, changes(topic("left"))))
        await asyncio.to_thread(entered.wait)
        leaving.cancel()
        await asyncio.wait([leaving])
        go_on.set()
        version = await store.apply(A, changes(topic("second")))
        feed.close()
        assert leaving.cancelled()
        assert version == 3
        assert [change.version async for change in feed] == [2, 3]
        shown = list((await store.snapshot(A)).persistent.names())
    async with sqlite(tmp_path) as store:
        assert list((await store.snapshot(A)).persistent.names()) == shown
        assert (await store.snapshot(A)).version == 3


async def test_the_cache_keeps_the_snapshots_used_last_within_its_bound(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "topics.db", 10_000)
    await store.open()
    spaces = [NamespaceName.parse(f"tenant/n{n}") for n in range(6)]
    for space in spaces:
        added = [f"persistent://{space}/{n:03d}{'x' * 60}".encode() for n in range(40)]
        await store.apply(space, TopicChanges(added))
    for space in (*spaces, spaces[0], spaces[1], spaces[0]):
        await store.snapshot(space)
    known = [space for space in spaces if store.estimated_bytes(space, PERSISTENT) is not None]
    assert known == spaces[:2]
    assert 0 < store.cached_bytes <= 10_000
    wire_bytes = sum([(await store.snapshot(one)).wire_bytes for one in known])
    await store.close()
    assert store.cached_bytes == wire_bytes + 2 * SNAPSHOT_BYTES


async def test_a_single_snapshot_above_the_bound_is_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "topics.db", 10)
    await store.open()
    await store.apply(A, changes(topic("a"), topic("b")))
    first, second = await store.snapshot(A), await store.snapshot(A)
    assert first is second
    assert len(first.persistent) == 2
    await store.close()


async def test_concurrent_readers_of_a_namespace_share_a_single_snapshot(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as store:
        await store.apply(A, changes(topic("a")))
    async with sqlite(tmp_path) as store:
        found = await asyncio.gather(*(store.snapshot(A) for _ in range(10)))
        assert len({id(snapshot) for snapshot in found}) == 1


async def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    async with sqlite(tmp_path / "deeper" / "still") as store:
        assert await store.create_namespace(A)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0garbage"])
async def test_a_file_that_is_no_database_is_refused_with_its_path(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "topics.db"
    path.write_bytes(content)
    store = SqliteStore(path, 0)
    with pytest.raises(StoreError) as caught:
        await store.open()
    assert str(path) in str(caught.value)
    assert "cannot be opened" in str(caught.value)


async def test_a_foreign_database_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "topics.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE topics (id INTEGER)")
        other.execute("CREATE TABLE namespaces (id INTEGER)")
    other.close()
    store = SqliteStore(path, 0)
    with pytest.raises(StoreError) as caught:
        await used(store)
    assert str(path) in str(caught.value)
    await store.close()


async def used(store: SqliteStore) -> None:
    await store.open()
    await store.create_namespace(A)


async def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "topics.db").mkdir()
    store = SqliteStore(tmp_path / "topics.db", 0)
    with pytest.raises(StoreError, match="cannot be opened"):
        await store.open()


async def test_a_closed_store_refuses_reads(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as store:
        pass
    with pytest.raises(StoreError, match="closed"):
        await store.snapshot(A)


def test_a_url_selects_the_memory_or_the_sqlite_store() -> None:
    memory, relative = store_for_url("memory:local", 0), store_for_url("sqlite:///a/b.db", 7)
    absolute = store_for_url("sqlite:////var/b.db", 7)
    assert isinstance(memory, MemoryStore)
    assert repr(relative) == "<SqliteStore a/b.db, 0 namespaces cached>"
    assert repr(absolute) == "<SqliteStore /var/b.db, 0 namespaces cached>"


def test_an_unsupported_store_url_is_refused_with_the_supported_urls() -> None:
    with pytest.raises(StoreError, match="use memory:local, sqlite:///path or postgresql://"):
        store_for_url("zk:localhost", 0)


FORMER_SCHEMA = """
CREATE TABLE namespaces (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE topics (
    namespace TEXT NOT NULL, name BLOB NOT NULL, PRIMARY KEY (namespace, name)) WITHOUT ROWID;
CREATE TABLE partitioned (
    namespace TEXT NOT NULL, name TEXT NOT NULL, partitions INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)) WITHOUT ROWID;
CREATE TABLE properties (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, name BLOB NOT NULL,
    PRIMARY KEY (namespace, name, key)) WITHOUT ROWID;
CREATE INDEX properties_by_value ON properties (namespace, key, value, name);
INSERT INTO namespaces VALUES ('tenant/a', 5), ('other/b', 0);
INSERT INTO topics VALUES ('tenant/a', CAST('persistent://tenant/a/x' AS BLOB));
INSERT INTO properties VALUES ('tenant/a', 'k', 'v', CAST('persistent://tenant/a/x' AS BLOB));
"""


async def test_a_file_of_the_former_schema_is_opened(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "topics.db") as former:
        former.executescript(FORMER_SCHEMA)
    former.close()
    async with sqlite(tmp_path) as store:
        assert (await store.snapshot(A)).version == 5
        assert await store.properties(A, topic("x").decode()) == {"k": "v"}
        assert await store.policies(A) == NamespacePolicies()
        assert list(await store.tenants()) == ["other", "tenant"]
        assert await store.apply(A, changes(topic("y"))) == 6
    async with sqlite(tmp_path) as store:
        await store.delete_namespace(NamespaceName.parse("other/b"))
        assert await store.delete_tenant("other")
        # Deleted rows stay deleted after a restart.
        assert list(await store.tenants()) == ["tenant"]


async def test_a_second_broker_on_the_same_file_is_refused(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as store:
        await store.apply(A, changes(topic("a")))
        second = SqliteStore(tmp_path / "topics.db", 0)
        with pytest.raises(StoreError, match=r"in use by another broker; .*postgresql://"):
            await second.open()
        await second.close()
        assert await store.apply(A, changes(topic("b"))) == 2
    async with sqlite(tmp_path) as store:
        assert (await store.snapshot(A)).version == 2


@pytest.mark.parametrize("counted", [(1_000,), (2, 1_000), (2,)])
async def test_the_order_of_wanted_properties_does_not_change_the_selection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: tuple[int, ...]
) -> None:
    monkeypatch.setattr(sqlite_file, "COUNTED_TOPICS", counted)
    async with sqlite(tmp_path) as store:
        rows = {topic(f"t{n:02d}"): {"all": "x", "few": str(n // 4)} for n in range(40)}
        await store.apply(A, with_properties(rows))
        pairs = [("all", "x"), ("few", "7")]
        asked = [store._file._rarest_first("tenant/a", pairs[::step]) for step in (1, -1)]
        found = [await store.select(A, PERSISTENT, dict(pairs[::step])) for step in (1, -1)]
        assert [len(one) for one in found] == [4, 4]
        if counted[-1] > 2:
            assert asked == [pairs[::-1], pairs[::-1]]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE namespaces SET name=''",
        "UPDATE namespaces SET version='x'",
        "UPDATE topics SET name='text'",
        "UPDATE partitioned SET name=x'00'",
        "UPDATE policies SET bundles='x'",
        "UPDATE tenants SET roles='{'",
        "UPDATE tenants SET clusters='5'",
        "INSERT INTO configuration VALUES (x'00', 'x')",
        "INSERT INTO message_policies VALUES ('', 'k', '1')",
        "INSERT INTO message_policies VALUES ('a/b', 'k', '{')",
    ],
)
async def test_data_not_written_by_a_broker_is_reported_as_a_store_error(
    change: str, tmp_path
) -> None:
    async with sqlite(tmp_path) as store:
        await store.create_namespace(A)
        await store.apply(A, changes(topic("t"), p=2))
        path = store._path
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    async with opened(SqliteStore(path, 1_000)) as store:
        with pytest.raises(StoreError, match="data not written by a broker"):
            await read_all(store)


async def read_all(store: SqliteStore) -> None:
    """Read as a broker does at startup and at requests."""
    await store.tenants()
    await store.configuration()
    await store.policy_documents()
    for namespace in await store.namespaces():
        await store.policies(namespace)
        await store.snapshot(namespace)


async def test_a_file_whose_error_text_cannot_be_decoded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE namespaces (name)")
    connection.close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xff\xff\xff\xff\xff"))
    with pytest.raises(StoreError, match="cannot be opened"):
        await SqliteStore(path, 1_000).open()


async def test_many_new_namespaces_are_written_in_a_single_commit(tmp_path: Path) -> None:
    some = [NamespaceName("tenant", f"n{number}") for number in range(100)]
    async with sqlite(tmp_path) as store:
        said = list[str]()
        await store._run(lambda file: file._connection.set_trace_callback(said.append))
        await store.apply_all(
            [(one, TopicChanges([topic("x", one)], adds_only=True)) for one in some]
        )
        assert said.count("COMMIT") == 1
        assert await store.namespaces() == sorted(some, key=str)
