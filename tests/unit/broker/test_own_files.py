"""Files of a broker are unreadable for other users."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.messages.stores.sqlite.database import DatabaseFile
from broker.stores.sqlite.file import SqliteFile


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_databases_and_their_folder_are_accessible_only_to_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    topics = SqliteFile(folder / "topics.db")
    messages = DatabaseFile(folder / "messages.db", temporary=False, fsync=False)
    writer = messages.writer()
    writer.execute("CREATE TABLE more (x)")
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    writer.close()
    messages.release()
    topics.close()
    assert {"topics.db", "topics.db-wal", "messages.db", "messages.db-wal"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_existing_database_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "topics.db"
    path.touch()
    path.chmod(0o640)
    SqliteFile(path).close()
    assert path.stat().st_mode & 0o777 == 0o640
