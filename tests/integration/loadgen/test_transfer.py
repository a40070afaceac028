"""Topics into a broker, checked, and out again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.imports import importer
from client.admin.pulsar_admin import PulsarAdmin
from loadgen.errors import LoadgenError
from loadgen.topics import loading
from loadgen.topics.corpus import Corpus, write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.listings import take_snapshot, verify_loaded
from loadgen.topics.loading import load_by_import, load_by_rest
from loadgen.topics.plan import TopicPlan, TopicShape
from proto.names import TopicName
from tests.support.processes.cluster import cluster

PLAN = TopicPlan(300, 5, 7, TopicShape(namespace_skew=1.0))


def nobody(count: int) -> None:
    """Unwatched progress."""


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(PLAN, tmp_path / "topics", 2, in_this_process(nobody))


def rows(corpus: Corpus) -> list[dict[str, Any]]:
    found = [row for file in corpus.files for row in pq.read_table(file).to_pylist()]
    return sorted(found, key=lambda row: row["topic"])


async def test_loaded_topics_are_verified_against_the_manifest(corpus: Corpus) -> None:
    async with cluster() as parts:
        url = parts.broker.web_service_url
        await load_by_rest(corpus.directory, url, nobody, 8)
        found = await verify_loaded(corpus.directory, url, nobody)
    assert (found.namespaces, found.topics) == (5, 300)


async def test_an_import_reports_its_progress_within_a_file(corpus: Corpus, monkeypatch) -> None:
    told: list[int] = []
    seen = asyncio.Event()
    whole = importer.import_topics

    async def import_topics(store: Any, path: Path, progress: Any, **more: Any) -> Any:
        progress(7)
        await seen.wait()
        return await whole(store, path, progress, **more)

    def on_topics(count: int) -> None:
        told.append(count)
        if count:
            seen.set()

    monkeypatch.setattr(importer, "import_topics", import_topics)
    monkeypatch.setattr(loading, "LOOK_SECONDS", 0.0)
    folder = {"floodgateImportDirectory": str(corpus.directory)}
    async with cluster(broker=folder) as parts:
        await load_by_import(corpus.directory, parts.broker.web_service_url, on_topics)
        left = await asked(parts.broker.web_service_url)
    assert next(filter(None, told)) in (7, 14)
    assert (told[-1], left) == (300, {})


async def asked(url: str) -> dict[str, Any]:
    async with PulsarAdmin(url) as admin:
        return await admin.floodgate.imports()


async def test_non_persistent_topics_are_verified_only_after_an_import(tmp_path) -> None:
    plan = TopicPlan(300, 5, 7, TopicShape(non_persistent_share=0.3))
    mixed = write_corpus(plan, tmp_path / "topics", 2, in_this_process(nobody))
    others = [row["topic"] for row in rows(mixed) if row["topic"].startswith("non-persistent")]
    settings = ("floodgateImportDirectory", str(tmp_path))
    async with cluster(broker=dict([settings])) as parts:
        url = parts.broker.web_service_url
        await load_by_import(mixed.directory, url, nobody)
        whole = await verify_loaded(mixed.directory, url, nobody, imported=True)
        as_of_rest = await verify_loaded(mixed.directory, url, nobody)
        async with PulsarAdmin(url) as admin:
            await admin.topics.delete(TopicName.parse(others[0]))
        with pytest.raises(LoadgenError, match=f"lists 1 missing, such as {others[0]}$"):
            await verify_loaded(mixed.directory, url, nobody, imported=True)
    assert (whole.topics, whole.left_out) == (300, 0)
    assert (as_of_rest.topics, as_of_rest.left_out) == (300 - len(others), len(others))


async def test_a_missing_and_an_extra_topic_are_named(corpus: Corpus) -> None:
    async with cluster() as parts, PulsarAdmin(parts.broker.web_service_url) as admin:
        url = parts.broker.web_service_url
        await load_by_rest(corpus.directory, url, nobody, 8)
        plain = next(row for row in rows(corpus) if row["partitions"] == 0)
        await admin.topics.delete(TopicName.parse(plain["topic"]))
        await admin.topics.create(TopicName.parse(f"persistent://{plain['namespace']}/more"))
        with pytest.raises(LoadgenError) as caught:
            await verify_loaded(corpus.directory, url, nobody)
    said = str(caught.value)
    assert f"{plain['namespace']} lists 1 missing, such as {plain['topic']}" in said
    assert "1 that the corpus does not have, such as persistent://" in said
    assert "set brokerDeleteInactiveTopicsEnabled=false" in said
    assert caught.value.exit_code == 97


@pytest.mark.parametrize("properties", [False, True])
async def test_a_snapshot_equals_the_loaded_corpus(corpus, tmp_path, properties) -> None:
    async with cluster() as parts:
        url = parts.broker.web_service_url
        await load_by_rest(corpus.directory, url, nobody, 8)
        taken = await take_snapshot(url, tmp_path / "taken", nobody, properties=properties)
    assert taken.manifest.namespaces == corpus.manifest.namespaces
    expected = rows(corpus)
    for row in expected:
        row["properties"] = sorted(row["properties"]) if properties else []
    assert rows(taken) == expected
    shape = json.loads((tmp_path / "taken" / "_manifest.json").read_text())["shape"]
    assert shape["snapshot_of"] == url


async def test_a_snapshot_has_the_partition_count_of_each_topic(tmp_path: Path) -> None:
    async with cluster() as parts, PulsarAdmin(parts.broker.web_service_url) as admin:
        url = parts.broker.web_service_url
        await admin.topics.create_partitioned(TopicName.parse("persistent://public/default/a"), 2)
        await admin.topics.create(TopicName.parse("persistent://public/default/b"))
        taken = await take_snapshot(url, tmp_path / "taken", nobody)
    assert [(row["topic"].rpartition("/")[2], row["partitions"]) for row in rows(taken)] == [
        ("a-partition-0", 2), ("a-partition-1", 2), ("b", 0)]  # fmt: skip
