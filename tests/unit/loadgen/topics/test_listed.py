"""An operator's list becomes a corpus."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import UsageError
from loadgen.topics import listed, lists
from loadgen.topics.corpus import Corpus, write_corpus
from loadgen.topics.executors import in_processes, in_this_process
from loadgen.topics.listed import ListedCorpus, write_listed_corpus
from loadgen.topics.lists import batches_of, pieces_of
from loadgen.topics.plan import TopicPlan, TopicShape
from proto.parquet_versions import version_metadata
from tests.support.examples import many

HERE = in_this_process(lambda done: None)


def rows(corpus: Corpus) -> list[dict[str, Any]]:
    found = [row for file in corpus.files for row in pq.read_table(file).to_pylist()]
    return sorted(found, key=lambda row: (row["namespace"], row["topic"]))


def make(path: Path, out: Path, *, skip_invalid: bool = False) -> ListedCorpus:
    return write_listed_corpus(path, out, [HERE, HERE], skip_invalid=skip_invalid)


def text(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    plan = TopicPlan(600, 9, 7, TopicShape(non_persistent_share=0.2, namespace_skew=1))
    return write_corpus(plan, tmp_path / "made", 3, HERE)


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split a small list into as many parts as a large list."""
    monkeypatch.setattr(listed, "BUCKET_ROWS", 60)
    monkeypatch.setattr(lists, "_BATCH_ROWS", 50)


@pytest.mark.usefixtures("many_buckets")
def test_the_files_of_a_corpus_make_the_same_corpus_again(corpus: Corpus, tmp_path) -> None:
    made = make(corpus.directory, tmp_path / "again").corpus
    assert rows(made) == rows(corpus)
    assert made.manifest.namespaces == corpus.manifest.namespaces
    assert made.manifest.seed is None
    assert len(made.files) > 1


@pytest.mark.usefixtures("many_buckets")
def test_a_text_file_in_any_order_makes_the_corpus_of_its_names(corpus: Corpus, tmp_path) -> None:
    names = [row["topic"] for row in rows(corpus)]
    path = text(tmp_path, *reversed(names))
    made = make(path, tmp_path / "again").corpus
    assert made.manifest.namespaces == corpus.manifest.namespaces
    without = [{**row, "properties": []} for row in rows(corpus)]
    assert rows(made) == without


def test_worker_processes_make_the_same_corpus_as_a_single_process(
    corpus: Corpus, tmp_path: Path
) -> None:
    beside = in_processes(lambda done: None, processes=2)
    made = write_listed_corpus(corpus.directory, tmp_path / "again", [beside, beside]).corpus
    assert rows(made) == rows(corpus)


@pytest.mark.parametrize(
    ("names", "said", "found", "twice"),
    [
        pytest.param(
            ["c", "c", "c", "d"], None, [("c", 0), ("d", 0)], 2,
            id="a name that comes twice is one topic",
        ),
        pytest.param(
            ["c-partition-0", "c-partition-12", "d"], None,
            [("c-partition-0", 13), ("c-partition-12", 13), ("d", 0)], 0,
            id="partitions are counted where the list does not say them",
        ),
        pytest.param(
            ["c", "c-partition-1", "d"], [3, 3, None],
            [("c-partition-0", 3), ("c-partition-1", 3), ("c-partition-2", 3), ("d", 0)], 1,
            id="a partitioned topic without its partitions stands for them",
        ),
        pytest.param(
            ["c-partition-0"], [8], [("c-partition-0", 8)], 0, id="what the list says is kept"
        ),
    ],
)  # fmt: skip
def test_a_list_is_expanded_into_distinct_topics_with_their_partitions(
    tmp_path, names, said, found, twice
) -> None:
    full = [f"persistent://a/b/{name}" for name in names]
    path = text(tmp_path, *full)
    if said:
        path = tmp_path / "topics.parquet"
        pq.write_table(pa.table({"topic": full, "partitions": pa.array(said, "int32")}), path)
    made = make(path, tmp_path / "out")
    assert [(row["topic"][17:], row["partitions"]) for row in rows(made.corpus)] == found
    assert made.duplicates == twice


def test_invalid_rows_are_numbered_across_row_groups(tmp_path: Path) -> None:
    # Given a second row group whose second row is invalid
    path = tmp_path / "topics.parquet"
    names = ["persistent://a/b/c", "persistent://a/b/d", "persistent://a/b/e", "one"]
    pq.write_table(pa.table({"topic": names}), path, row_group_size=2)
    with pytest.raises(UsageError, match="row 4: 'one' is not a full topic name"):
        make(path, tmp_path / "out")


def test_unusual_but_valid_names_are_accepted(tmp_path: Path) -> None:
    odd = ["persistent://a/b/é x", "PERSISTENT://a/b/c", "persistent://a/b/-partition-0",
           "persistent://a/b/x-partition-9999999999"]  # fmt: skip
    found = rows(make(text(tmp_path, "\ufeff# mine", *odd, ""), tmp_path / "out").corpus)
    assert {row["topic"] for row in found} == {"persistent://a/b/c", odd[0], odd[2], odd[3]}


def test_invalid_names_are_reported_with_their_lines_and_no_file_is_written(tmp_path: Path) -> None:
    lines = ["# mine", "persistent://a/b/c", "one", "", "persistent://a/b/x-partition-100000"]
    path = text(tmp_path, *lines)
    with pytest.raises(UsageError) as caught:
        make(path, tmp_path / "out")
    for said in (
        "2 of 3 topics are invalid",
        "line 3: 'one' is not a full topic name",
        "line 5: 'persistent://a/b/x-partition-100000' is partition 100000",
    ):
        assert said in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["names.txt"]
    left = make(path, tmp_path / "out", skip_invalid=True)
    assert (left.corpus.manifest.topics, left.invalid.count) == (1, 2)


def test_lines_of_a_text_read_in_pieces_are_numbered_continuously(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(lists, "PIECE_BYTES", 40)
    with pytest.raises(UsageError, match="line 9: 'one' is not a full topic name"):
        make(text(tmp_path, *["persistent://a/b/c"] * 8, "one"), tmp_path / "out")


@pytest.mark.parametrize("lines", [[""], ["# mine"], ["one"]])
def test_a_list_without_topics_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(UsageError, match=r"holds no topic|topics are invalid"):
        make(text(tmp_path, *lines), tmp_path / "out", skip_invalid=True)


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=40),
       st.integers(1, 50))  # fmt: skip
@settings(max_examples=many(60))
def test_pieces_of_a_text_hold_every_line_once(tmp_path_factory, lines, piece_bytes) -> None:
    path = tmp_path_factory.mktemp("list") / "x"
    path.write_bytes(b"".join(line.replace(b"\0", b"0") + b"\n" for line in lines))
    (whole,) = pieces_of(path) or [None]
    with patch.object(lists, "PIECE_BYTES", piece_bytes):
        cut = pieces_of(path)
    names = [names_in(piece) for piece in cut]
    assert [name for part in names for name in part] == (names_in(whole) if whole else [])
    assert sum(map(len, names)) == len(lines)
    assert [piece.first for piece in cut] == [1 + sum(map(len, names[:n])) for n in range(len(cut))]


def names_in(piece: Any) -> list[bytes | None]:
    return [name for _, batch in batches_of(piece) for name in batch["topic"].to_pylist()]


def test_a_hive_partition_folder_provides_a_column(tmp_path: Path) -> None:
    for folder, local in (("partitions=2", "many"), ("partitions=0", "one")):
        (tmp_path / "list" / folder).mkdir(parents=True)
        names = pa.table({"topic": [f"persistent://t/n/{local}"]})
        pq.write_table(names, tmp_path / "list" / folder / "0.parquet")
    made = make(tmp_path / "list", tmp_path / "out").corpus
    assert [(row["topic"], row["partitions"]) for row in rows(made)] == [
        ("persistent://t/n/many-partition-0", 2),
        ("persistent://t/n/many-partition-1", 2),
        ("persistent://t/n/one", 0),
    ]


def test_a_hive_partition_folder_overrides_a_column_of_its_files(tmp_path: Path) -> None:
    for local, partitions in (("a", "2"), ("c", "__HIVE_DEFAULT_PARTITION__")):
        topic = f"topic=persistent:%2F%2Ft%2Fn%2F{local}"
        folder = tmp_path / "list" / topic / f"partitions={partitions}"
        folder.mkdir(parents=True)
        others = pa.table({"topic": ["persistent://t/n/b"], "partitions": pa.array([7], "int32")})
        pq.write_table(others, folder / "0.parquet")
    made = make(tmp_path / "list", tmp_path / "out").corpus
    assert [(row["topic"], row["partitions"]) for row in rows(made)] == [
        ("persistent://t/n/a-partition-0", 2),
        ("persistent://t/n/a-partition-1", 2),
        ("persistent://t/n/c", 0),
    ]


def test_topics_of_a_newer_schema_version_are_refused(tmp_path: Path) -> None:
    newer = pa.table({"topic": ["persistent://t/n/a"]}, metadata=version_metadata(99))
    pq.write_table(newer, tmp_path / "0.parquet")
    with pytest.raises(UsageError, match=r"/0\.parquet has version b'99' of its schema, and this"):
        make(tmp_path / "0.parquet", tmp_path / "out")


def test_a_damaged_parquet_list_is_refused_with_its_path(tmp_path: Path) -> None:
    names = pa.table({"topic": [f"persistent://t/n/{number}" for number in range(2_000)]})
    pq.write_table(names, tmp_path / "0.parquet")
    content = bytearray((tmp_path / "0.parquet").read_bytes())
    content[20:2_000] = bytes(1_980)
    (tmp_path / "0.parquet").write_bytes(content)
    with pytest.raises(UsageError, match=r"/0\.parquet cannot be read: "):
        make(tmp_path / "0.parquet", tmp_path / "out")


def test_a_corpus_is_not_written_over_its_own_topic_list(tmp_path: Path) -> None:
    # Given a corpus, and a link to a corpus file
    source = tmp_path / "names.txt"
    source.write_text("persistent://t/n/a\n")
    make(source, tmp_path / "out")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "out" / "part-00000.parquet")
    with pytest.raises(UsageError, match=r"--out \S+/out would replace the list \S+/link"):
        make(tmp_path / "link.parquet", tmp_path / "out")
    assert (tmp_path / "out" / "part-00000.parquet").exists()


def test_a_partitions_folder_without_a_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list" / "partitions=many").mkdir(parents=True)
    names = pa.table({"topic": ["persistent://t/n/a"]})
    pq.write_table(names, tmp_path / "list" / "partitions=many" / "0.parquet")
    with pytest.raises(UsageError, match=r"=many/0\.parquet: 'many' is no number of part"):
        make(tmp_path / "list", tmp_path / "out")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"name": ["x"]}, "no column `topic`"),
        ({"topic": [1]}, "no column `topic` of text"),
        (None, "a folder without Parquet files"),
    ],
)
def test_a_file_or_folder_without_a_topic_column_is_refused(
    tmp_path, columns: dict[str, Any] | None, said: str
) -> None:
    path = tmp_path
    if columns:
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table(columns), path)
    with pytest.raises(UsageError, match=said):
        make(path, tmp_path / "out")
