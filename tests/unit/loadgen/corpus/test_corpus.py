from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.corpus.corpus import Corpus, open_corpus, write_corpus
from loadgen.corpus.executors import in_this_process
from loadgen.corpus.manifest import read_manifest
from loadgen.corpus.topic_plan import TopicPlan
from loadgen.errors import LoadgenError, UsageError
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from pathlib import Path

PLAN = TopicPlan(1000, 7, seed=7)


def write(out: Path, parts: int = 3) -> Corpus:
    return write_corpus(PLAN, out, parts, in_this_process(lambda done: None))


def test_the_manifest_says_what_the_files_hold(tmp_path: Path) -> None:
    # When
    corpus = write(tmp_path / "topics")
    # Then
    assert corpus.manifest.topics == 1000
    for name, entry in corpus.manifest.namespaces.items():
        tables = [pq.read_table(file, filters=[("namespace", "==", name)]) for file in corpus.files]
        names = [topic for table in tables for topic in table.column("topic").to_pylist()]
        assert entry.topics == len(names)
        assert entry.hash == topics_hash(names)
        assert entry.name_bytes == sum(map(len, names))


def test_a_namespace_lies_in_one_file_and_files_are_ordered(tmp_path: Path) -> None:
    # When
    corpus = write(tmp_path / "topics")
    # Then
    columns = [pq.read_table(file).column("namespace").to_pylist() for file in corpus.files]
    assert [sorted(set(column)) for column in columns] == [
        list(dict.fromkeys(column)) for column in columns
    ]
    together = [name for column in columns for name in dict.fromkeys(column)]
    assert together == sorted(corpus.manifest.namespaces)


def test_row_groups_stay_below_their_limit(tmp_path: Path) -> None:
    # Given
    plan = TopicPlan(250_000, 2, seed=7)
    # When
    corpus = write_corpus(plan, tmp_path / "topics", 1, in_this_process(lambda done: None))
    # Then
    metadata = pq.ParquetFile(corpus.files[0]).metadata
    rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert sum(rows) == 250_000
    assert max(rows) <= 100_000


def test_more_parts_than_namespaces_make_no_empty_file(tmp_path: Path) -> None:
    assert len(write(tmp_path / "topics", parts=50).files) == 7


def test_a_corpus_reads_back_as_it_was_written(tmp_path: Path) -> None:
    # Given
    written = write(tmp_path / "topics")
    # When
    found = open_corpus(tmp_path / "topics")
    # Then
    assert found == written


def test_an_older_corpus_is_replaced(tmp_path: Path) -> None:
    # Given
    write(tmp_path / "topics", parts=7)
    # When
    corpus = write(tmp_path / "topics", parts=2)
    # Then
    assert len(corpus.files) == 2
    assert open_corpus(tmp_path / "topics") == corpus


def test_what_is_no_corpus_is_not_replaced(tmp_path: Path) -> None:
    # Given
    (tmp_path / "letter.txt").write_text("dear")
    # When / Then
    with pytest.raises(UsageError, match="is not a topic corpus, so it is not replaced"):
        write(tmp_path)


def test_a_job_that_fails_leaves_the_older_corpus_alone(tmp_path: Path) -> None:
    # Given
    older = write(tmp_path / "topics")
    # When
    with pytest.raises(LoadgenError, match="0 topics in 0 namespaces instead of 1000 in 7"):
        write_corpus(PLAN, tmp_path / "topics", 3, lambda work, parts: [])
    # Then
    assert open_corpus(tmp_path / "topics") == older
    assert [path.name for path in tmp_path.iterdir()] == ["topics"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    # Given
    (tmp_path / "file").write_text("")
    # When / Then
    with pytest.raises(LoadgenError, match="cannot be written"):
        write(tmp_path / "file" / "topics")


def test_a_directory_without_manifest_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it has no manifest\.json"):
        open_corpus(tmp_path)


def test_a_file_is_no_corpus(tmp_path: Path) -> None:
    # Given
    (tmp_path / "x").write_text("")
    # When / Then
    with pytest.raises(UsageError, match="is not a directory"):
        open_corpus(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read as a corpus manifest"),
        ("[]", "has schema_version None"),
        ('{"schema_version": 2}', "has schema_version 2"),
        ('{"schema_version": 1}', "is not a corpus manifest"),
        ('{"schema_version": 1, "namespaces": {"a/b": 1}}', "is not a corpus manifest"),
    ],
)
def test_a_broken_manifest_is_named(tmp_path: Path, content: str, said: str) -> None:
    # Given
    (tmp_path / "manifest.json").write_text(content)
    # When / Then
    with pytest.raises(UsageError, match=said):
        read_manifest(tmp_path)


def test_a_missing_file_is_noticed(tmp_path: Path) -> None:
    # Given
    write(tmp_path / "topics").files[0].unlink()
    # When / Then
    with pytest.raises(UsageError, match=r"but its manifest\.json says 1000"):
        open_corpus(tmp_path / "topics")


def test_a_file_with_other_columns_is_named(tmp_path: Path) -> None:
    # Given
    file = write(tmp_path / "topics").files[0]
    pq.write_table(pa.table({"tenant": ["a"], "namespace": [1]}), file)
    # When / Then
    with pytest.raises(UsageError, match="column namespace is int64, not string"):
        open_corpus(tmp_path / "topics")


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    # Given
    file = write(tmp_path / "topics").files[0]
    file.write_text("no")
    # When / Then
    with pytest.raises(UsageError, match="cannot be read as Parquet"):
        open_corpus(tmp_path / "topics")


def test_the_manifest_has_the_published_form(tmp_path: Path) -> None:
    # When
    write(tmp_path / "topics")
    # Then
    content = json.loads((tmp_path / "topics" / "manifest.json").read_text())
    assert content["schema_version"] == 1
    assert (content["seed"], content["topics"]) == (7, 1000)
    entry = next(iter(content["namespaces"].values()))
    assert set(entry) == {"topics", "hash", "name_bytes"}
