"""Importing topics: from Parquet and from text, complete namespaces only, or a sentence."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import proto.PulsarApi_pb2 as pb
from broker.imports import importer
from broker.imports.importer import ImportFailedError, import_topics
from broker.imports.staging import StagedRows
from broker.stores import memory
from broker.stores.memory import MemoryStore
from proto.names import MAX_CACHED_NAME_CHARACTERS, NamespaceName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
PROPERTIES = pa.map_(pa.string(), pa.string())


def names(namespace: str, count: int, start: int = 0) -> list[str]:
    return [f"persistent://{namespace}/t{n:05d}" for n in range(start, start + count)]


def table(topics: Iterable[str], properties: list[dict[str, str]] | None = None) -> pa.Table:
    topics = list(topics)
    spaces = ["/".join(topic.split("/")[2:4]) for topic in topics]
    columns = {"namespace": pa.array(spaces, pa.string()), "topic": pa.array(topics, pa.string())}
    if properties is not None:
        rows = [list(row.items()) for row in properties]
        columns["properties"] = pa.array(rows, PROPERTIES)
    return pa.table(columns)


def parquet(path: Path, rows: pa.Table, group: int = 1_000) -> Path:
    pq.write_table(rows, path, row_group_size=group)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


async def listed(store: MemoryStore, namespace: str) -> list[str] | None:
    snapshot = await store.snapshot(NamespaceName.parse(namespace))
    return None if snapshot is None else list(snapshot.listing(PERSISTENT).names())


async def refusal(path: Path) -> str:
    """Return the sentence of a failed import, checking that no topic became visible."""
    store = MemoryStore()
    with pytest.raises(ImportFailedError) as caught:
        await import_topics(store, path)
    assert await store.namespaces() == []
    return str(caught.value)


def calling_threads(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> list[threading.Thread]:
    """Return the list of the threads that will have called a function."""
    threads, call = list[threading.Thread](), getattr(owner, name)

    def noticed(*given: object) -> object:
        threads.append(threading.current_thread())
        return call(*given)

    monkeypatch.setattr(owner, name, noticed)
    return threads


async def imported(path: Path) -> MemoryStore:
    """Return a store with only the topics of a file."""
    store = MemoryStore()
    await import_topics(store, path)
    return store


# -- reading ----------------------------------------------------------------------------------


async def test_namespaces_that_span_row_groups_are_imported_whole(tmp_path: Path) -> None:
    spaces = [f"tenant/n{n}" for n in range(5)]
    rows = [name for space in spaces for name in names(space, 2_500)]
    store = MemoryStore()
    result = await import_topics(store, parquet(tmp_path / "t.parquet", table(rows)))
    assert (result.topics, result.namespaces) == (12_500, 5)
    assert result.seconds > 0
    for space in spaces:
        assert await listed(store, space) == names(space, 2_500)


async def test_rows_are_numbered_across_batches_and_namespaces_are_applied_whole(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("broker.imports.files.ROWS_PER_BATCH", 7)
    topics = [name for n in range(10) for space in "ab" for name in names(f"tenant/{space}", 1, n)]
    rows = pa.table({"namespace": ["tenant/a", "tenant/b"] * 10 + ["tenant/b"]})
    rows = rows.append_column("topic", pa.array([*topics, "broken"]))
    path, store, applied = parquet(tmp_path / "t.parquet", rows, group=16), MemoryStore(), []
    result = await import_topics(store, path, applied.append, skip_invalid=True)
    assert "row 21: 'broken'" in result.report
    assert applied == [10, 20]
    assert (await store.snapshot(NamespaceName.parse("tenant/a"))).version == 1
    assert await listed(store, "tenant/b") == names("tenant/b", 10)


async def test_a_namespace_is_not_visible_before_its_import_is_complete(tmp_path: Path) -> None:
    rows = table(names("tenant/a", 3_000) + names("tenant/b", 3_000))
    store, seen, done = MemoryStore(), set(), asyncio.Event()

    async def poll() -> None:
        while not done.is_set():
            for space in ("tenant/a", "tenant/b"):
                found = await listed(store, space)
                seen.add((space, None if found is None else len(found)))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(poll())
        await import_topics(store, parquet(tmp_path / "t.parquet", rows, group=100))
        await asyncio.sleep(0)
        done.set()
    whole = {("tenant/a", 3_000), ("tenant/b", 3_000)}
    assert seen == {("tenant/a", None), ("tenant/b", None), *whole}


async def test_scattered_rows_of_a_namespace_keep_their_properties(tmp_path: Path) -> None:
    topics = [name for n in range(20) for s in "abc" for name in names(f"tenant/{s}", 1, n)]
    rows = table(topics, [{"name": topic} for topic in topics])
    store = await imported(parquet(tmp_path / "t.parquet", rows, group=7))
    for topic in topics:
        namespace = NamespaceName.parse("/".join(topic.split("/")[2:4]))
        assert await store.properties(namespace, topic) == {"name": topic}
    for space in ("tenant/a", "tenant/b", "tenant/c"):
        assert await listed(store, space) == names(space, 20)


@pytest.mark.parametrize("kind", ["parquet", "text"])
async def test_files_are_read_off_the_event_loop(tmp_path, monkeypatch, kind: str) -> None:
    rows = names("tenant/a", 3) + names("tenant/b", 3)
    path = tmp_path / "t"
    path = parquet(path, table(rows)) if kind == "parquet" else text(path, "\n".join(rows))
    threads = calling_threads(monkeypatch, StagedRows, "add")
    await import_topics(MemoryStore(), path)
    assert threads
    assert threading.current_thread() not in threads


async def test_scattered_rows_of_a_namespace_are_applied_together(tmp_path: Path) -> None:
    scattered = [
        name
        for n in range(50)
        for name in (*names("tenant/a", 3, n * 3), *names("tenant/b", 2, n * 2))
    ]
    store, versions = MemoryStore(), []
    path = parquet(tmp_path / "t.parquet", table(scattered), group=7)
    await import_topics(store, path, versions.append)
    assert await listed(store, "tenant/a") == names("tenant/a", 150)
    assert await listed(store, "tenant/b") == names("tenant/b", 100)
    assert versions == [150, 250]


async def test_the_parquet_files_of_a_folder_are_a_single_import(tmp_path: Path) -> None:
    parquet(tmp_path / "part-1.parquet", table(names("tenant/b", 10)))
    parquet(tmp_path / "part-0.parquet", table(names("tenant/a", 10) + names("tenant/b", 5, 10)))
    for manifest in ("_manifest.json", "manifest.json"):  # of a corpus, current and older
        text(tmp_path / manifest, "{}")
    store = MemoryStore()
    result = await import_topics(store, tmp_path)
    assert (result.topics, result.namespaces) == (25, 2)
    assert await listed(store, "tenant/b") == names("tenant/b", 15)


async def test_parquet_files_without_statistics_are_imported(tmp_path: Path) -> None:
    rows = table(names("tenant/a", 100) + names("tenant/b", 100))
    path = tmp_path / "t.parquet"
    pq.write_table(rows, path, row_group_size=30, write_statistics=False)
    store, progress = MemoryStore(), []
    await import_topics(store, path, progress.append)
    assert progress == [100, 200]
    assert await listed(store, "tenant/a") == names("tenant/a", 100)
    assert await listed(store, "tenant/b") == names("tenant/b", 100)


async def test_duplicates_count_once_in_the_listing(tmp_path: Path) -> None:
    rows = names("tenant/a", 10) + names("tenant/a", 10)
    store = MemoryStore()
    result = await import_topics(store, parquet(tmp_path / "t.parquet", table(rows), group=4))
    assert result.topics == 20
    assert await listed(store, "tenant/a") == names("tenant/a", 10)


async def test_a_second_import_adds_to_the_existing_topics(tmp_path: Path) -> None:
    store = MemoryStore()
    await import_topics(store, parquet(tmp_path / "a.parquet", table(names("tenant/a", 10))))
    await import_topics(store, parquet(tmp_path / "b.parquet", table(names("tenant/a", 10, 5))))
    assert await listed(store, "tenant/a") == names("tenant/a", 15)


async def test_the_highest_partition_number_sets_the_partition_count(tmp_path: Path) -> None:
    base = "persistent://tenant/a/part"
    rows = [f"{base}-partition-{n}" for n in (0, 11, 2)]
    rows += ["persistent://tenant/a/odd-partition-007", "persistent://tenant/a/x-partition-"]
    rows += ["persistent://tenant/a/huge-partition-99999999999999999999999"]
    store = await imported(parquet(tmp_path / "t.parquet", table(rows)))
    snapshot = await store.snapshot(NamespaceName.parse("tenant/a"))
    assert dict(snapshot.partitioned) == {base: 12}


@pytest.mark.parametrize("group", [1, 3, 1_000])
async def test_properties_stay_with_their_topics(tmp_path: Path, group: int) -> None:
    topics = names("tenant/a", 8) + names("tenant/b", 4)
    properties = [{"n": str(n % 3)} | ({"odd": "yes"} if n % 2 else {}) for n in range(12)]
    properties[4] = {}
    path = parquet(tmp_path / "t.parquet", table(topics, properties), group)
    store = await imported(path)
    for space, start, end in (("tenant/a", 0, 8), ("tenant/b", 8, 12)):
        found = await store.select(NamespaceName.parse(space), PERSISTENT, {"n": "1", "odd": "yes"})
        wanted = {"n": "1", "odd": "yes"}
        expected = [topics[n] for n in range(start, end) if properties[n] == wanted]
        assert list(found.names()) == expected


async def test_null_properties_are_imported_as_no_properties(tmp_path: Path) -> None:
    rows = table(names("tenant/a", 3), [{"k": "v"}, {}, {"k": "v"}])
    column = pa.array([None, [("k", "v")], None], PROPERTIES)
    path = parquet(tmp_path / "t.parquet", rows.set_column(2, "properties", column))
    store = await imported(path)
    found = await store.select(NamespaceName.parse("tenant/a"), PERSISTENT, {"k": "v"})
    assert list(found.names()) == names("tenant/a", 3)[1:2]


async def test_a_long_import_logs_its_progress(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(importer, "_TOLD_TOPICS", 100)
    topics = [*names("a/a", 80), *names("a/b", 130), *names("a/c", 20)]
    with caplog.at_level("INFO", importer.__name__):
        await import_topics(MemoryStore(), parquet(tmp_path / "x.parquet", table(topics)))
    assert [record.getMessage().split(" of ")[0] for record in caplog.records] == [
        "imported 210 topics"
    ]


async def test_a_file_without_topics_is_refused(tmp_path: Path) -> None:
    paths = [parquet(tmp_path / "t.parquet", table([]))]
    paths += [text(tmp_path / f"{n}.txt", said) for n, said in enumerate(["", "\n", "# t\n"])]
    for path in paths:
        assert await refusal(path) == f"{path} holds no topic"


async def test_a_file_of_a_folder_may_be_empty(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", table([]))
    parquet(tmp_path / "1.parquet", table(names("tenant/a", 2)))
    result = await import_topics(MemoryStore(), tmp_path)
    assert (result.topics, result.namespaces) == (2, 1)


async def test_text_may_have_blank_lines_quotes_and_any_order(tmp_path: Path) -> None:
    b, a, c, d = names("tenant/b", 1) + names("tenant/a", 3)
    content = f'\n"{b}"\r\n  {a}\n\n\t"{c}"  \n{d}'
    store = MemoryStore()
    result = await import_topics(store, text(tmp_path / "t.txt", content))
    assert (result.topics, result.namespaces) == (4, 2)
    assert await listed(store, "tenant/a") == names("tenant/a", 3)
    assert await listed(store, "tenant/b") == names("tenant/b", 1)


async def test_text_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(names("tenant/a", 2)), encoding="utf-8-sig")
    store = await imported(path)
    assert await listed(store, "tenant/a") == names("tenant/a", 2)


async def test_text_read_in_batches_becomes_visible_in_a_single_version(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("broker.imports.files.TEXT_BYTES_PER_BATCH", 300)
    rows = [name for n in range(40) for space in "ab" for name in names(f"tenant/{space}", 1, n)]
    store = await imported(text(tmp_path / "t.txt", "\n".join(rows)))
    assert (await store.snapshot(NamespaceName.parse("tenant/a"))).version == 1
    assert await listed(store, "tenant/b") == names("tenant/b", 40)


async def test_non_persistent_topics_and_unicode_names_are_imported(tmp_path: Path) -> None:
    rows = ["non-persistent://tenant/a/n", "persistent://tenant/a/Grüße 🚀 %2F"]
    store = await imported(text(tmp_path / "t.txt", "\n".join(rows)))
    snapshot = await store.snapshot(NamespaceName.parse("tenant/a"))
    assert list(snapshot.listing(pb.CommandGetTopicsOfNamespace.ALL).names()) == rows


# -- refusals ---------------------------------------------------------------------------------


async def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert await refusal(tmp_path / "none.parquet") == f"{tmp_path}/none.parquet does not exist"


async def test_a_folder_without_parquet_files_is_refused(tmp_path: Path) -> None:
    assert await refusal(tmp_path) == f"{tmp_path} holds no *.parquet file"


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"topic": ["x"]}, "has no column namespace of type string"),
        ({"namespace": ["x"]}, "has no column topic of type string"),
        ({"namespace": ["x"], "topic": [1]}, "has no column topic of type string"),
        ({"namespace": [b"x"], "topic": ["x"]}, "has no column namespace of type string"),
        (
            {"namespace": ["x"], "topic": ["x"], "properties": ["x"]},
            "column properties is string, expected map<string, string>",
        ),
    ],
)
async def test_a_missing_or_mistyped_column_is_refused_by_name(
    tmp_path, columns, complaint
) -> None:
    path = parquet(tmp_path / "t.parquet", pa.table(columns))
    sentence = await refusal(path)
    assert str(path) in sentence
    assert complaint in sentence


@pytest.mark.parametrize(
    "kind", [pa.map_(pa.string(), pa.int32()), pa.map_(pa.int32(), pa.string())], ids=str
)
async def test_properties_that_are_not_strings_are_refused_with_their_type(
    tmp_path: Path, kind: pa.DataType
) -> None:
    rows = table(names("tenant/a", 1)).append_column("properties", pa.array([[]], kind))
    sentence = await refusal(parquet(tmp_path / "t.parquet", rows))
    assert "column properties is map<" in sentence
    assert f"expected {PROPERTIES}" in sentence


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + b"x" * 100, b"PAR1" + b"\0" * 50 + b"PAR1"])
async def test_a_corrupt_parquet_file_is_refused_as_unreadable(tmp_path, content: bytes) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    assert f"{path} is not a readable Parquet file" in await refusal(path)


async def test_a_damaged_parquet_page_is_refused_with_the_path(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", table(names("tenant/a", 5_000)), group=5_000)
    damaged = bytearray(path.read_bytes())
    damaged[4 : len(damaged) // 2] = b"\xff" * (len(damaged) // 2 - 4)
    path.write_bytes(damaged)
    assert str(path) in await refusal(path)


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "t",
        "tenant/a/t",
        "topic://tenant/a/t",
        "persistent://tenant/a",
        "persistent://tenant/a/",
        "persistent://tenant/a/ ",
        "persistent://tenant/cluster/a/t",
        "persistent://ten ant/a/t",
        "persistent://tenant/b/t",
    ],
)
async def test_a_malformed_topic_is_refused_with_its_row_and_namespace(
    tmp_path: Path, topic: str
) -> None:
    rows = pa.table({"namespace": ["tenant/a"] * 2, "topic": ["persistent://tenant/a/ok", topic]})
    path = parquet(tmp_path / "t.parquet", rows)
    sentence = await refusal(path)
    assert f"row 2: {topic!r} is not a full topic name in namespace 'tenant/a'" in sentence


@pytest.mark.parametrize("column", [0, 1])
async def test_a_row_without_topic_or_namespace_is_refused_with_its_number(
    tmp_path: Path, column: int
) -> None:
    rows = table(names("tenant/a", 2))
    field = rows.schema.field(column)
    holed = rows.set_column(column, field, pa.array([None, rows[column][1].as_py()], pa.string()))
    assert "row 1: lacks its topic or its namespace" in await refusal(
        parquet(tmp_path / "t.parquet", holed)
    )


@pytest.mark.parametrize("line", ["my-topic", "persistent://tenant/a", "a,b,c"])
async def test_a_line_that_is_not_a_topic_is_refused_with_its_number(tmp_path, line: str) -> None:
    content = "\n".join([*names("tenant/a", 3), line])
    sentence = await refusal(text(tmp_path / "t.txt", content))
    assert f"line 4: {line!r} is not a full topic name" in sentence
    assert "expected persistent://tenant/namespace/topic" in sentence
    assert "namespace ''" not in sentence


async def test_a_file_that_is_neither_parquet_nor_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.bin"
    path.write_bytes(b"\x80\x81\x00" * 100)
    assert f"{path} is neither Parquet nor UTF-8 text" in await refusal(path)


async def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert f"{path} cannot be read" in await refusal(path)


async def test_a_file_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in await refusal(tmp_path / ("x" * 5_000))


# -- invalid topics ---------------------------------------------------------------------------


def some_invalid(tmp_path: Path, kind: str, count: int) -> Path:
    """Return a file with ``count`` invalid topics, each behind a valid topic."""
    valid, invalid = names("tenant/a", count), [f"broken{n}" for n in range(count)]
    topics = [name for pair in zip(valid, invalid, strict=True) for name in pair]
    if kind == "text":
        return text(tmp_path / "t.txt", "# topics\n\n" + "\n".join(topics))
    rows = pa.table({"namespace": ["tenant/a"] * len(topics), "topic": topics})
    return parquet(tmp_path / "t.parquet", rows, group=7)


@pytest.mark.parametrize(("kind", "first"), [("text", "line 4"), ("parquet", "row 2")])
async def test_all_invalid_topics_are_counted_and_the_first_20_are_reported_with_numbers(
    tmp_path: Path, kind: str, first: str
) -> None:
    path = some_invalid(tmp_path, kind, 25)
    lines = (await refusal(path)).splitlines()
    assert lines[0] == f"{path}: 25 of 50 topics are invalid"
    assert lines[1].startswith(f"  {first}: 'broken0' is not a full topic name")
    assert [line.split(": ")[1].split()[0] for line in lines[1:21]] == [
        f"'broken{n}'" for n in range(20)
    ]
    assert lines[21] == "  and 5 more"
    assert lines[22].endswith("or skip invalid topics with --skip-invalid")
    assert len(lines) == 23


@pytest.mark.parametrize("kind", ["text", "parquet"])
async def test_valid_topics_are_imported_when_invalid_topics_are_skipped(tmp_path, kind) -> None:
    store, path = MemoryStore(), some_invalid(tmp_path, kind, 25)
    result = await import_topics(store, path, skip_invalid=True)
    assert (result.topics, result.skipped) == (25, 25)
    assert f"{path}: 25 of 50 topics are invalid" in result.report
    assert await listed(store, "tenant/a") == names("tenant/a", 25)


async def test_a_file_with_only_invalid_topics_is_refused_even_when_skipping(tmp_path) -> None:
    path = text(tmp_path / "t.txt", "one\ntwo\n")
    with pytest.raises(ImportFailedError) as caught:
        await import_topics(MemoryStore(), path, skip_invalid=True)
    assert f"{path}: 2 of 2 topics are invalid" in str(caught.value)


async def test_an_invalid_row_in_a_folder_is_reported_with_its_file(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", table(names("tenant/a", 3)))
    rows = pa.table({"namespace": ["tenant/a"] * 2, "topic": [*names("tenant/a", 1), "broken"]})
    parquet(tmp_path / "1.parquet", rows, group=1)
    assert "1.parquet, row 2: 'broken' is not a full topic name" in await refusal(tmp_path)


async def test_an_invalid_topic_in_a_later_namespace_refuses_the_whole_import(tmp_path) -> None:
    topics = [*names("tenant/a", 3), *names("tenant/b", 2), "broken"]
    rows = pa.table({"namespace": ["tenant/a"] * 3 + ["tenant/b"] * 3, "topic": topics})
    assert "row 6: 'broken'" in await refusal(parquet(tmp_path / "t.parquet", rows, group=2))


@pytest.mark.parametrize("kind", ["text", "parquet"])
async def test_a_file_changed_during_its_import_is_refused(tmp_path, kind: str) -> None:
    path = tmp_path / "t"

    def write(more: int) -> None:
        longer = names("tenant/a", 3 + more)
        parquet(path, table(longer)) if kind == "parquet" else text(path, "\n".join(longer))

    write(0)
    with pytest.raises(ImportFailedError) as caught:
        await import_topics(MemoryStore(), path, lambda _: write(more=1))
    assert str(caught.value) == f"{path} was changed while it was imported: import it again"


async def test_existing_topics_are_compared_off_the_event_loop(tmp_path, monkeypatch) -> None:
    store = MemoryStore()
    await import_topics(store, text(tmp_path / "a.txt", "\n".join(names("tenant/a", 3))))
    threads = calling_threads(monkeypatch, memory, "settled")
    await import_topics(store, text(tmp_path / "b.txt", "\n".join(names("tenant/a", 3, 1))))
    assert threads
    assert threading.current_thread() not in threads
    assert await listed(store, "tenant/a") == names("tenant/a", 4)


async def test_namespace_changes_are_prepared_off_the_event_loop(tmp_path, monkeypatch) -> None:
    threads = calling_threads(monkeypatch, importer, "additions")
    await import_topics(MemoryStore(), text(tmp_path / "t.txt", "\n".join(names("tenant/a", 3))))
    assert len(threads) == 1
    assert threading.current_thread() not in threads


async def test_many_namespaces_are_imported_with_few_calls_to_threads(
    tmp_path, monkeypatch
) -> None:
    rows = [name for number in range(1_000) for name in names(f"tenant/n{number}", 2)]
    threads, hand_over = list[object](), asyncio.to_thread

    async def counted(work: Callable[..., object], *given: object) -> object:
        threads.append(work)
        return await hand_over(work, *given)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    result = await import_topics(MemoryStore(), parquet(tmp_path / "t.parquet", table(rows)))
    assert (result.topics, result.namespaces) == (2_000, 1_000)
    assert len(threads) < 20


async def test_names_of_applied_namespaces_do_not_stay_in_memory(tmp_path, monkeypatch) -> None:
    # Freeing 100,000 topics together at the end of an import held a turn for 20 ms.
    monkeypatch.setattr("broker.imports.staging.ROWS_PER_LOT", 2)
    alive = list[int]()

    async def count_names(lot: object) -> None:
        del lot
        known = (one for one in gc.get_objects() if isinstance(one, NamespaceName))
        alive.append(sum(one.tenant == "counted" for one in known))

    store = MemoryStore()
    monkeypatch.setattr(store, "apply_all", count_names)
    long = "n" * MAX_CACHED_NAME_CHARACTERS  # The cache keeps shorter names until it is full.
    rows = [name for number in range(10) for name in names(f"counted/{long}{number}", 2)]
    await import_topics(store, parquet(tmp_path / "t.parquet", table(rows)))
    assert alive == [1] * 10
