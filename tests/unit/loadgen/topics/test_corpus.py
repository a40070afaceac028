import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import LoadgenError, UsageError
from loadgen.plan.clients import Namespace
from loadgen.topics.corpus import Corpus, open_corpus, write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.manifest import MANIFEST_NAME, expected_namespaces, namespace_entry
from loadgen.topics.plan import TopicPlan, TopicShape
from loadgen.topics.reading import read_topics
from proto.topic_hash import topics_hash
from tests.support.examples import many

PLAN = TopicPlan(1000, 7, seed=7)


def write(out: Path, parts: int = 3, plan: TopicPlan = PLAN) -> Corpus:
    return write_corpus(plan, out, parts, in_this_process(lambda done: None))


def test_partial_files_of_a_killed_task_are_not_part_of_a_corpus(tmp_path: Path) -> None:
    here = in_this_process(lambda done: None)

    def again(work: Callable[[int], list[Any]], parts: int) -> Iterable[Any]:
        (unfinished,) = tmp_path.glob(".topics.*")
        (unfinished / ".part-00001.parquet.4711").write_bytes(b"half a file")
        return here(work, parts)

    corpus = write_corpus(PLAN, tmp_path / "topics", 3, again)
    found = {each.name for each in corpus.directory.iterdir()}
    assert found == {MANIFEST_NAME, *(each.name for each in corpus.files)}


def test_the_manifest_counts_and_hashes_the_topics_of_each_namespace(tmp_path: Path) -> None:
    corpus = write(tmp_path / "topics")
    content = json.loads((tmp_path / "topics" / "_manifest.json").read_text())
    assert (content["schema_version"], content["seed"], content["topics"]) == (1, 7, 1000)
    assert len(content["namespaces"]) == 7
    for name, entry in content["namespaces"].items():
        tables = [pq.read_table(file, filters=[("namespace", "==", name)]) for file in corpus.files]
        names = [topic for table in tables for topic in table.column("topic").to_pylist()]
        assert entry == {
            "topics": len(names),
            "hash": topics_hash(names),
            "name_bytes": sum(map(len, names)),
        }


def test_a_corpus_directory_is_readable_as_a_parquet_data_set(tmp_path: Path) -> None:
    write(tmp_path / "topics")
    assert pq.read_table(tmp_path / "topics").num_rows == 1000


def test_a_namespace_is_in_a_single_file_and_files_are_sorted(tmp_path: Path) -> None:
    corpus = write(tmp_path / "topics")
    columns = [pq.read_table(file).column("namespace").to_pylist() for file in corpus.files]
    together = [name for column in columns for name in dict.fromkeys(column)]
    assert together == sorted(corpus.manifest.namespaces)
    assert all(column == sorted(column) for column in columns)


def test_row_groups_stay_below_their_maximum_of_rows(tmp_path: Path) -> None:
    corpus = write(tmp_path / "topics", 1, TopicPlan(250_000, 2, seed=7))
    metadata = pq.ParquetFile(corpus.files[0]).metadata
    rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert sum(rows) == 250_000
    assert max(rows) <= 100_000


def test_more_parts_than_namespaces_make_no_empty_file(tmp_path: Path) -> None:
    assert len(write(tmp_path / "topics", parts=50).files) == 7


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_corpus_is_read_back_unchanged(tmp_path: Path, share: float) -> None:
    plan = TopicPlan(1000, 7, 7, TopicShape(non_persistent_share=share))
    written = write(tmp_path / "topics", plan=plan)
    assert open_corpus(tmp_path / "topics") == written


def test_a_corpus_with_the_older_manifest_name_is_read_and_replaced(tmp_path: Path) -> None:
    out = tmp_path / "topics"
    written = write(out)
    (out / MANIFEST_NAME).rename(out / "manifest.json")
    assert open_corpus(out) == written
    assert write(out, parts=2).files == open_corpus(out).files
    assert not (out / "manifest.json").exists()


def test_a_new_corpus_replaces_all_files_of_an_older_corpus(tmp_path: Path) -> None:
    write(tmp_path / "topics", parts=7)
    corpus = write(tmp_path / "topics", parts=2)
    assert len(corpus.files) == 2
    assert open_corpus(tmp_path / "topics") == corpus


def test_corpus_files_carry_their_schema_version(tmp_path: Path) -> None:
    (file,) = write(tmp_path / "topics", parts=1).files
    assert pq.read_metadata(file).metadata[b"floodgate.schema_version"] == b"1"


def test_a_column_that_an_older_corpus_lacks_is_null(tmp_path: Path) -> None:
    corpus = write(tmp_path / "topics")
    for file in corpus.files:
        pq.write_table(pq.read_table(file, columns=["namespace", "topic"]), file)
    assert open_corpus(corpus.directory) == corpus
    assert {len(topic.properties) for topic in read_topics(corpus.directory)} == {0}


def test_a_directory_that_is_no_corpus_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not a topic corpus, so it is not replaced"):
        write(tmp_path)


def test_a_failed_job_keeps_the_older_corpus(tmp_path: Path) -> None:
    older = write(tmp_path / "topics")
    with pytest.raises(LoadgenError, match="0 topics in 0 namespaces instead of 1000 in 7"):
        write_corpus(PLAN, tmp_path / "topics", 3, lambda work, parts: [])
    assert open_corpus(tmp_path / "topics") == older
    assert [path.name for path in tmp_path.iterdir()] == ["topics"]


def test_an_output_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LoadgenError, match="cannot be written"):
        write(tmp_path / "file" / "topics")


def manifest(content: str) -> Callable[[Corpus], object]:
    return lambda corpus: (corpus.directory / MANIFEST_NAME).write_text(content)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda corpus: (corpus.directory / MANIFEST_NAME).unlink(), r"it has no _manifest\.json"),
        (lambda corpus: corpus.directory.rename(corpus.directory / "../y"), "is not a directory"),
        (manifest("{"), "is not a corpus manifest: the whole: Invalid JSON"),
        (manifest("[]"), "is not a corpus manifest: the whole: Input should be an object"),
        (manifest('{"schema_version": 2}'), "schema_version: Input should be 1.*loadgen topics"),
        (manifest('{"schema_version": 1}'), "is not a corpus manifest: seed: Field required"),
        (
            manifest('{"schema_version": 1, "seed": 1, "topics": 1, "namespaces": {"a/b": 1}}'),
            "is not a corpus manifest: namespaces.a/b",
        ),
        (lambda corpus: corpus.files[0].unlink(), r"but its _manifest\.json says 1000"),
        (lambda corpus: corpus.files[0].write_text("no"), "cannot be read as Parquet"),
        (
            lambda corpus: pq.write_table(
                pa.table({"tenant": ["a"], "namespace": [1]}), corpus.files[0]
            ),
            "column namespace is int64, not string",
        ),
    ],
)
def test_a_damaged_corpus_is_refused_with_the_reason(tmp_path, spoil, said) -> None:
    spoil(write(tmp_path / "topics"))
    with pytest.raises(UsageError, match=said):
        open_corpus(tmp_path / "topics")


NAMES = st.lists(
    st.builds(
        "{}://a/b/{}".format,
        st.sampled_from(["persistent", "non-persistent"]),
        st.text(st.sampled_from("ab.\ufffd\U0001f600"), min_size=1),
    ),
    max_size=20,
    unique=True,
)


@given(NAMES)
@settings(max_examples=many(60))
def test_a_manifest_entry_holds_javas_hash_and_persistent_topics_separately(
    names: list[str],
) -> None:
    names.sort()
    entry = namespace_entry(pa.chunked_array([names[:1], names[1:]], pa.string()))
    persistent = [name for name in names if name.startswith("persistent://")]
    assert (entry.topics, entry.hash) == (len(names), topics_hash(names))
    assert entry.name_bytes == sum(len(name.encode()) for name in names)
    assert (entry.asked.topics, entry.asked.hash) == (len(persistent), topics_hash(persistent))
    assert (entry.persistent is None) == (persistent == names)


def test_expected_namespaces_of_a_corpus_have_only_persistent_topics(tmp_path) -> None:
    plan = TopicPlan(100, 3, 7, TopicShape(non_persistent_share=0.5))
    corpus = write(tmp_path / "x", plan=plan)
    expected = [
        Namespace(name=name, topics=entry.asked.topics, hash=entry.asked.hash)
        for name, entry in corpus.manifest.namespaces.items()
    ]
    assert list(expected_namespaces(corpus.directory)) == expected
