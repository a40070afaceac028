"""Imports over the admin REST: from one folder only, with a readable answer."""

from pathlib import Path
from threading import current_thread, main_thread

import aiohttp
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.admin.resources import floodgate
from broker.admin.resources.floodgate import IMPORT_PATH
from broker.stores.changes import StoreError
from proto.names import TopicName
from tests.support.processes.cluster import Cluster, cluster, topic_names

NAMES = topic_names("tenant/new", 25)


async def post(parts: Cluster, body: object) -> tuple[int, dict[str, object]]:
    url = f"{parts.broker.web_service_url}{IMPORT_PATH}"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        return response.status, await response.json()


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """The folder of permitted imports."""
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "t.txt").write_text("\n".join(NAMES))
    (folder / "bad.txt").write_text("no topic")
    (tmp_path / "secret.txt").write_text("\n".join(NAMES))
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "secret.parquet").write_bytes(b"PAR1")
    (folder / "corpus").mkdir()
    (folder / "corpus" / "part.parquet").symlink_to(tmp_path / "secret.parquet")
    return folder


async def test_topics_are_imported_and_listed(allowed: Path) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        assert (status, answer["topics"], answer["namespaces"]) == (200, 25, 1)
        listing = await parts.client().topics_of_namespace("tenant/new")
        assert list(listing.topics) == NAMES


async def test_imports_are_refused_without_floodgate_import_directory(allowed: Path) -> None:
    async with cluster() as parts:
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        assert status == 403
        assert "floodgateImportDirectory" in answer["reason"]


async def test_only_an_allowed_folder_is_walked_and_not_on_the_main_thread(
    allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[tuple[Path, bool]] = []

    def walk(folder: Path) -> list[Path]:
        walked.append((folder, current_thread() is main_thread()))
        return []

    monkeypatch.setattr(floodgate, "parquet_files", walk)
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        for path in (allowed, allowed.parent):
            await post(parts, {"path": str(path)})
    assert walked == [(allowed, False)]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "link.txt", "corpus", ".."])
async def test_a_path_outside_the_import_directory_is_refused(allowed: Path, path: str) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        status, answer = await post(parts, {"path": str(allowed / path)})
        assert status == 403
        assert "does not lie in floodgateImportDirectory" in answer["reason"]
        assert await parts.client().topics_of_namespace("tenant/new")


async def test_an_invalid_name_fails_the_import_unless_skip_invalid_is_set(allowed: Path) -> None:
    (allowed / "some.txt").write_text("\n".join([*NAMES, "broken"]))
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        refused, told = await post(parts, {"path": str(allowed / "some.txt")})
        listing = await parts.client().topics_of_namespace("tenant/new")
        body = {"path": str(allowed / "some.txt"), "skipInvalid": True}
        status, answer = await post(parts, body)
    assert (refused, listing.topics) == (412, ())
    assert "line 26: 'broken' is not a full topic name" in str(told["reason"])
    assert (status, answer["topics"], answer["skipped"]) == (200, 25, 1)


async def test_names_that_are_not_utf8_are_refused_with_their_row(allowed: Path) -> None:
    names = [pa.array([text], pa.binary()).view(pa.string()) for text in (b"tenant/a", b"\xff")]
    pq.write_table(pa.table(names, ["namespace", "topic"]), allowed / "t.parquet")
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        status, answer = await post(parts, {"path": str(allowed / "t.parquet")})
    assert status == 412
    assert "row 1: b'\\xff' is not UTF-8" in str(answer["reason"])


async def test_a_repeated_import_restores_a_deleted_topic(allowed: Path) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        body = {"path": str(allowed / "t.txt")}
        await post(parts, body)
        await parts.broker.topics.delete(TopicName.parse(NAMES[0]))
        await post(parts, body)
        assert list((await parts.client().topics_of_namespace("tenant/new")).topics) == NAMES


TOO_LARGE = {"path": "x" * 65_536}


@pytest.mark.parametrize("body", [None, [], {}, {"path": 1}, {"path": "x", "more": 1}, TOO_LARGE])
async def test_a_malformed_body_is_refused_with_a_valid_form(allowed: Path, body: object) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        status, answer = await post(parts, body)
        assert status == 412
        assert '{"path": "/folder/or/file"}' in answer["reason"]


@pytest.mark.parametrize("path", ["bad.txt", "none.txt", "nul\0byte", "x" * 5_000])
async def test_a_file_that_cannot_be_imported_gives_a_reason(allowed: Path, path: str) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        status, answer = await post(parts, {"path": f"{allowed}/{path}"})
        assert status == 412
        assert answer["reason"]


async def test_a_failing_metadata_store_is_answered_500_with_its_error(allowed: Path) -> None:
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:

        async def fail(_: object) -> None:
            raise StoreError("the disk is full")

        parts.broker.store.apply_all = fail
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        assert (status, answer["reason"]) == (500, "the disk is full")
