"""A run has a bounded number of files, with each row once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.errors import LoadgenError
from loadgen.results import merging
from loadgen.results.merging import MOST_FILES, merged_files
from loadgen.results.tables import TABLES, parts_of, write_table
from tests.support.runs.recorded_run import request

TASKS = 2 * MOST_FILES + 1


def record(run: Path, tasks: int) -> list[dict[str, Any]]:
    """Write a table with a row per task, and return the rows."""
    for task in range(tasks):
        row = request(task=task, reason=f"that of {task}")
        write_table(str(run), "requests", task, {name: [row[name]] for name in row})
    return rows(run)


def rows(run: Path) -> list[dict[str, Any]]:
    return [row for part in parts_of(run, "requests") for row in pq.read_table(part).to_pylist()]


@pytest.mark.parametrize("row_group", [1, 2, 100])
def test_many_part_files_are_merged_into_few_with_the_same_rows(
    row_group: int, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(merging, "_ROW_GROUP_ROWS", row_group)
    before = record(tmp_path, TASKS)
    names = merged_files(tmp_path, ())["requests"]
    assert names == [each.name for each in parts_of(tmp_path, "requests")]
    assert len(names) <= MOST_FILES
    assert rows(tmp_path) == before
    schema = pq.read_schema(parts_of(tmp_path, "requests")[0])
    assert schema.equals(TABLES["requests"], check_metadata=True)


def test_few_part_files_are_not_merged(tmp_path: Path) -> None:
    record(tmp_path, MOST_FILES)
    assert merged_files(tmp_path, ()) == {
        "requests": [f"part-{number:05}.parquet" for number in range(MOST_FILES)],
        "events": [],
        "samples": [],
    }


def test_part_files_that_cannot_be_merged_are_kept(tmp_path: Path) -> None:
    record(tmp_path, TASKS)
    damaged = tmp_path / "requests" / "part-00000.parquet"
    damaged.write_bytes(b"half a file")
    names = merged_files(tmp_path, ())["requests"]
    assert names[0] == "merged-part-00003.parquet"
    assert names[-3:] == [f"part-0000{number}.parquet" for number in range(3)]


def test_a_part_that_cannot_be_deleted_fails_the_run(tmp_path, monkeypatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    record(tmp_path, TASKS)
    monkeypatch.setattr(type(tmp_path), "unlink", refuse)
    with pytest.raises(LoadgenError, match=r"part-\d+\.parquet cannot be deleted: Permission"):
        merged_files(tmp_path, ())


def test_missing_rows_of_a_task_fail_the_run(tmp_path: Path) -> None:
    record(tmp_path, 2)
    with pytest.raises(LoadgenError, match=r"part-00002\.parquet is missing, but task 2"):
        merged_files(tmp_path, range(3))


def test_a_merged_file_that_is_complete_despite_an_error_fails_the_run(
    tmp_path, monkeypatch
) -> None:
    @contextmanager
    def unanswered(path: Path) -> Iterator[pa.NativeFile]:
        with pa.OSFile(str(path), "wb") as file:
            yield file
        raise LoadgenError("the store did not answer")

    record(tmp_path, TASKS)
    monkeypatch.setattr(merging, "written_whole", unanswered)
    with pytest.raises(LoadgenError, match="has rows that its parts have as well: the store did"):
        merged_files(tmp_path, ())


def test_part_files_that_lack_a_column_are_not_merged(tmp_path: Path) -> None:
    record(tmp_path, TASKS)
    for part in parts_of(tmp_path, "requests"):
        pq.write_table(pq.read_table(part).drop_columns(["reason"]), part)
    assert len(merged_files(tmp_path, ())["requests"]) == TASKS
