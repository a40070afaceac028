"""An operator's topics are counted, and the largest namespace is what is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.corpus.lists.own_topics import NamespaceSize, read_own_topics
from loadgen.errors import UsageError
from loadgen.studies.demo import parse_topics

if TYPE_CHECKING:
    from pathlib import Path

LINES = """# mine
persistent://a/small/t

persistent://a/large/one
  persistent://a/large/two-partition-0
non-persistent://a/volatile/t
non-persistent://a/volatile/u
non-persistent://a/volatile/v
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "topics.txt"
    path.write_text(LINES)
    return path


def test_persistent_topics_are_counted_by_namespace(text: Path) -> None:
    own = read_own_topics(text)
    large = len("persistent://a/large/one") + len("persistent://a/large/two-partition-0")
    assert own.namespaces == {
        "a/small": NamespaceSize(1, len("persistent://a/small/t")),
        "a/large": NamespaceSize(2, large),
    }
    assert own.topics == 3


@pytest.mark.parametrize("as_directory", [True, False])
def test_parquet_is_counted_as_text_is(tmp_path: Path, text: Path, as_directory: bool) -> None:
    names = [line.strip() for line in LINES.splitlines() if "://" in line]
    pq.write_table(pa.table({"topic": names}), tmp_path / "x.parquet")
    path = tmp_path if as_directory else tmp_path / "x.parquet"
    assert read_own_topics(path).namespaces == read_own_topics(text).namespaces


@pytest.mark.parametrize("as_parquet", [True, False])
def test_invalid_topics_are_told_before_a_server_starts(tmp_path: Path, as_parquet: bool) -> None:
    # Given
    names, path = ["persistent://a/b/c", "nonsense"], tmp_path / "topics"
    if as_parquet:
        pq.write_table(pa.table({"topic": names}), path)
    else:
        path.write_text("\n".join(names))
    # When
    with pytest.raises(UsageError) as refused:
        read_own_topics(path)
    # Then
    place = "row" if as_parquet else "line"
    told = f"{path}: 1 of 2 topics are invalid\n  {place} 2: 'nonsense' is not a full topic name"
    assert str(refused.value).startswith(f"--topics {told}")
    own = read_own_topics(path, skip_invalid=True)
    assert own.topics == 1
    assert own.invalid.startswith(told)


def test_lines_that_are_not_text_are_left_out_like_others(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_bytes(b"persistent://a/b/c\npersistent://a/b/\xff\n")
    assert read_own_topics(path, skip_invalid=True).topics == 1


def test_the_largest_namespace_is_chosen_unless_others_are_named(text: Path) -> None:
    own = read_own_topics(text)
    assert list(own.chosen([])) == ["a/large"]
    assert list(own.chosen(["a/small"])) == ["a/small"]


def test_a_namespace_that_is_not_there_is_told_with_those_that_are(text: Path) -> None:
    with pytest.raises(UsageError, match=r"--namespace a/b has no .* are: a/large, a/small$"):
        read_own_topics(text).chosen(["a/small", "a/b"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "names no persistent topic: one full name a line"),
        (b"orders\n", "line 1: 'orders' is not a full topic name"),
        (b"non-persistent://a/b/c\n", "names no persistent topic"),
        (b"\xff\xfe\x00", "is neither Parquet nor UTF-8 text"),
        (b"PAR1PAR1", "cannot be read as topics"),
    ],
)
def test_a_file_without_topics_is_one_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "topics"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_own_topics(path)


@pytest.mark.parametrize(
    ("text", "topics"),
    [("50000", 50_000), ("1M", 1_000_000), ("20k", 20_000), ("1.5m", 1_500_000),
     ("topics.txt", None), ("./1M", None), ("", None), ("1G", None)],
)  # fmt: skip
def test_a_number_of_topics_is_told_from_a_file(text: str, topics: int | None) -> None:
    assert parse_topics(text) == topics


@pytest.mark.parametrize("text", ["0", "0.5", "1.0001k"])
def test_a_number_that_makes_no_topics_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a whole number of topics above 0"):
        parse_topics(text)
