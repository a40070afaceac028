"""Topics to create, read from what people have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.corpus.corpus import write_corpus
from loadgen.corpus.executors import in_this_process
from loadgen.corpus.source import TopicToCreate, count_names, read_topics
from loadgen.corpus.topic_plan import TopicPlan
from loadgen.errors import UsageError
from proto.names import TopicName

if TYPE_CHECKING:
    from pathlib import Path

PLAN = TopicPlan(200, 2, seed=7)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(PLAN, tmp_path / "x", 2, in_this_process(lambda done: None)).directory


def text(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(names) + "\n")
    return path


def test_partitions_in_a_list_of_names_make_one_topic(tmp_path: Path) -> None:
    # Given
    path = text(tmp_path, "persistent://a/b/c-partition-0", "", "persistent://a/b/c-partition-2",
                "non-persistent://a/b/d")  # fmt: skip
    # When / Then
    assert list(read_topics(path)) == [
        TopicToCreate(TopicName.parse("persistent://a/b/c"), 3),
        TopicToCreate(TopicName.parse("non-persistent://a/b/d"), 0),
    ]


def test_a_single_file_of_a_corpus_can_be_loaded(corpus: Path) -> None:
    # Given
    file = min(corpus.glob("*.parquet"))
    # When
    names = sum(max(topic.partitions, 1) for topic in read_topics(file))
    # Then
    assert names == count_names(file) == 100


@pytest.mark.parametrize(
    "name", ["orders", "persistent://a/b", "persistent://a/b/c/d/e", "x://a/b/c"]
)
def test_a_line_that_is_no_topic_name_is_named(tmp_path: Path, name: str) -> None:
    # Given
    path = text(tmp_path, "persistent://a/b/c", name)
    # When / Then
    with pytest.raises(UsageError, match=f"line 2: '{name}' is not a full topic name"):
        read_topics(path)


def test_all_invalid_lines_are_named_before_anything_is_created(tmp_path: Path) -> None:
    # Given
    lines = [
        "\ufeff# mine",
        '"persistent://a/b/c"',
        "",
        "one",
        "persistent://a/b/x-partition-100000",
    ]
    path = text(tmp_path, *lines)
    # When
    with pytest.raises(UsageError) as caught:
        read_topics(path)
    # Then
    assert str(caught.value).splitlines()[:3] == [
        f"{path}: 2 of 3 topics are invalid",
        "  line 4: 'one' is not a full topic name; expected persistent://tenant/namespace/topic",
        "  line 5: 'persistent://a/b/x-partition-100000' is partition 100000; a topic has at most "
        "100,000",
    ]


def test_a_list_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no topic"):
        read_topics(text(tmp_path, "# mine", ""))


def test_names_that_are_not_utf8_are_invalid(tmp_path: Path, corpus: Path) -> None:
    # Given
    (tmp_path / "names").write_bytes(b"persistent://a/b/c\ncaf\xe9\n")
    file = min(corpus.glob("*.parquet"))
    rows = pq.read_table(file)
    names = rows["topic"].cast(pa.binary()).to_pylist()
    odd = pa.array([b"caf\xe9", *names[1:]], pa.binary()).view(pa.string())
    pq.write_table(rows.set_column(rows.column_names.index("topic"), "topic", odd), file)
    # When / Then
    for path, place in ((tmp_path / "names", "line 2"), (file, "row 1")):
        with pytest.raises(UsageError) as caught:
            read_topics(path)
        assert f"  {place}: b'caf\\xe9' is not UTF-8" in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    # Given
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe\x00")
    # When / Then
    with pytest.raises(UsageError, match="neither Parquet nor UTF-8"):
        list(read_topics(path))
