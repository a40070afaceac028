"""Imports asked for over the admin REST: from one folder only, and with an answer to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from broker.admin.imports import IMPORT_PATH
from broker.stores.store import StoreError
from tests.support.cluster import cluster, topic_names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster import Cluster

NAMES = topic_names("tenant/new", 25)


async def post(parts: Cluster, body: object) -> tuple[int, dict[str, object]]:
    url = f"{parts.broker.web_service_url}{IMPORT_PATH}"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        return response.status, await response.json()


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """The folder that imports may read."""
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "t.txt").write_text("\n".join(NAMES))
    (folder / "bad.txt").write_text("no topic")
    (tmp_path / "secret.txt").write_text("\n".join(NAMES))
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


async def test_topics_are_imported_and_listed(allowed: Path) -> None:
    # Given
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        # When
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        # Then
        assert (status, answer["topics"], answer["namespaces"]) == (200, 25, 1)
        listing = await parts.client().topics_of_namespace("tenant/new")
        assert list(listing.topics) == NAMES


async def test_without_a_folder_imports_are_off(allowed: Path) -> None:
    async with cluster() as parts:
        # When
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        # Then
        assert status == 403
        assert "floodgateImportDirectory" in answer["reason"]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "link.txt", ".."])
async def test_what_lies_elsewhere_is_not_read(allowed: Path, path: str) -> None:
    # Given
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        # When
        status, answer = await post(parts, {"path": str(allowed / path)})
        # Then
        assert status == 403
        assert "does not lie in floodgateImportDirectory" in answer["reason"]
        assert await parts.client().topics_of_namespace("tenant/new")


@pytest.mark.parametrize("body", [None, [], {}, {"path": 1}, {"path": "x", "more": 1}])
async def test_a_body_of_another_form_is_told_the_right_one(allowed: Path, body: object) -> None:
    # Given
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        # When
        status, answer = await post(parts, body)
        # Then
        assert status == 412
        assert '{"path": "/folder/or/file"}' in answer["reason"]


@pytest.mark.parametrize("path", ["bad.txt", "none.txt", "nul\0byte", "x" * 5_000])
async def test_a_file_that_cannot_be_imported_is_a_sentence(allowed: Path, path: str) -> None:
    # Given
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        # When
        status, answer = await post(parts, {"path": f"{allowed}/{path}"})
        # Then
        assert status == 412
        assert answer["reason"]


async def test_a_store_that_fails_is_a_sentence(allowed: Path) -> None:
    # Given
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:

        async def fail(*_: object) -> int:
            raise StoreError("the disk is full")

        parts.broker.store.apply = fail
        # When
        status, answer = await post(parts, {"path": str(allowed / "t.txt")})
        # Then
        assert (status, answer["reason"]) == (500, "the disk is full")


async def test_a_link_in_a_folder_cannot_lead_out_of_it(allowed: Path, tmp_path: Path) -> None:
    # Given
    (tmp_path / "secret.parquet").write_bytes(b"PAR1")
    folder = allowed / "corpus"
    folder.mkdir()
    (folder / "part.parquet").symlink_to(tmp_path / "secret.parquet")
    async with cluster(broker={"floodgateImportDirectory": str(allowed)}) as parts:
        # When
        status, answer = await post(parts, {"path": str(folder)})
    # Then
    assert status == 403
    assert "does not lie in floodgateImportDirectory" in str(answer["reason"])
