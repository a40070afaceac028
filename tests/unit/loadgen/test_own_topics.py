"""An operator's topics are counted, and the largest namespace is what is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.failures import UsageError
from loadgen.own_topics import NamespaceSize, parse_topics, read_own_topics

if TYPE_CHECKING:
    from pathlib import Path

LINES = """# mine
persistent://a/small/t

persistent://a/large/one
  persistent://a/large/two-partition-0
non-persistent://a/volatile/t
non-persistent://a/volatile/u
non-persistent://a/volatile/v
nonsense
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
    names = [line.strip() for line in LINES.splitlines()]
    pq.write_table(pa.table({"topic": names}), tmp_path / "x.parquet")
    path = tmp_path if as_directory else tmp_path / "x.parquet"
    assert read_own_topics(path).namespaces == read_own_topics(text).namespaces


def test_counts_go_on_from_one_batch_to_the_next(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_own_topics(text).namespaces
    monkeypatch.setattr("loadgen.own_topics._LINES_AT_ONCE", 2)
    assert read_own_topics(text).namespaces == whole


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
        (b"orders\n", "names no persistent topic"),
        (b"\xff\xfe\x00", "cannot be read as topics"),
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
