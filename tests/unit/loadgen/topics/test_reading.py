"""Topics to create, and topic counts, read from users' files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.errors import UsageError
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.plan import TopicPlan
from loadgen.topics.reading import (
    NamespaceSize,
    TopicToCreate,
    count_names,
    read_own_topics,
    read_topics,
)
from proto.names import TopicName

LINES = """# mine
persistent://a/small/t

persistent://a/large/one
  persistent://a/large/two-partition-0
non-persistent://a/volatile/t
non-persistent://a/volatile/u
non-persistent://a/volatile/v
"""
NOT_UTF8 = b"persistent://a/b/c\ncaf\xe9\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    plan = TopicPlan(200, 2, seed=7)
    return write_corpus(plan, tmp_path / "x", 2, in_this_process(lambda done: None)).directory


def text(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "names.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_listed_partitions_are_combined_into_a_single_topic(tmp_path: Path) -> None:
    names = ("persistent://a/b/c-partition-0", "", "persistent://a/b/c-partition-2",
             "non-persistent://a/b/d")  # fmt: skip
    assert list(read_topics(text(tmp_path, "\n".join(names)))) == [
        TopicToCreate(TopicName.parse("persistent://a/b/c"), 3),
        TopicToCreate(TopicName.parse("non-persistent://a/b/d"), 0),
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_a_corpus_or_a_single_file_is_read_topic_by_topic(corpus: Path, whole: bool) -> None:
    path = corpus if whole else min(corpus.glob("*.parquet"))
    rows = [row for file in sorted(corpus.glob("*.parquet"))[: 1 + whole]
            for row in pq.read_table(file).to_pylist()]  # fmt: skip
    expected = {
        row["topic"].partition("-partition-")[0]: (row["partitions"], dict(row["properties"]))
        for row in rows
    }
    topics = list(read_topics(path))
    assert {str(one.name): (one.partitions, one.properties) for one in topics} == expected
    assert len(topics) == len(expected)
    assert sum(max(topic.partitions, 1) for topic in topics) == count_names(path) == len(rows)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *(
            (f"persistent://a/b/c\n{name}", f"line 2: '{name}' is not a full topic name")
            for name in ("orders", "persistent://a/b", "persistent://a/b/c/d/e", "x://a/b/c")
        ),
        (
            '\ufeff# mine\n"persistent://a/b/c"\n\none\npersistent://a/b/x-partition-100000',
            ": 2 of 3 topics are invalid\n"
            "  line 4: 'one' is not a full topic name; expected persistent://tenant/namespace/topic\n"
            "  line 5: 'persistent://a/b/x-partition-100000' is partition 100000; a topic has at "
            "most 100,000",
        ),
        (NOT_UTF8, r"  line 2: b'caf\xe9' is not UTF-8"),
        ("# mine\n", "holds no topic"),
        (b"\xff\xfe\x00", "is neither Parquet nor UTF-8 text"),
    ],
)
def test_invalid_topic_names_are_refused_before_any_topic_is_created(
    tmp_path, content, said
) -> None:
    with pytest.raises(UsageError) as caught:
        read_topics(text(tmp_path, content))
    assert said in str(caught.value)


def test_parquet_names_that_are_not_utf_8_are_refused(corpus: Path) -> None:
    file = min(corpus.glob("*.parquet"))
    rows = pq.read_table(file)
    names = rows["topic"].cast(pa.binary()).to_pylist()
    odd = pa.array([b"caf\xe9", *names[1:]], pa.binary()).view(pa.string())
    pq.write_table(rows.set_column(rows.column_names.index("topic"), "topic", odd), file)
    with pytest.raises(UsageError) as caught:
        read_topics(file)
    assert r"  row 1: b'caf\xe9' is not UTF-8" in str(caught.value)


@pytest.mark.parametrize("form", ["text", "file", "folder"])
def test_persistent_topics_are_counted_by_namespace(tmp_path: Path, form: str) -> None:
    path = text(tmp_path, LINES)
    if form != "text":
        names = [line.strip() for line in LINES.splitlines() if "://" in line]
        pq.write_table(pa.table({"topic": names}), tmp_path / "x.parquet")
        path = tmp_path / "x.parquet" if form == "file" else tmp_path
    large = len("persistent://a/large/one") + len("persistent://a/large/two-partition-0")
    assert read_own_topics(path) == {
        "a/small": NamespaceSize(1, len("persistent://a/small/t")),
        "a/large": NamespaceSize(2, large),
    }
    assert list(read_own_topics(path, ["a/small"])) == ["a/small"]
    with pytest.raises(UsageError, match=r"--namespace a/b has no .* are: a/large, a/small$"):
        read_own_topics(path, ["a/small", "a/b"])


@pytest.mark.parametrize("as_parquet", [True, False])
def test_invalid_topics_of_an_operators_list_are_refused_with_their_place(
    tmp_path, as_parquet
) -> None:
    names, path = ["persistent://a/b/c", "nonsense"], tmp_path / "topics"
    if as_parquet:
        pq.write_table(pa.table({"topic": names}), path)
    else:
        path.write_text("\n".join(names))
    with pytest.raises(UsageError) as refused:
        read_own_topics(path)
    place = "row" if as_parquet else "line"
    told = f"{path}: 1 of 2 topics are invalid\n  {place} 2: 'nonsense' is not a full topic name"
    assert str(refused.value).startswith(f"--topics {told}")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "names no persistent topic: one full name a line"),
        (b"orders\n", "line 1: 'orders' is not a full topic name"),
        (b"non-persistent://a/b/c\n", "names no persistent topic"),
        (b"\xff\xfe\x00", "is neither Parquet nor UTF-8 text"),
        (b"PAR1PAR1", "cannot be read as Parquet"),
    ],
)
def test_a_file_without_persistent_topics_is_refused(
    tmp_path, content: bytes, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_own_topics(text(tmp_path, content))
