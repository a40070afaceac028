from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from loadgen.corpus import Corpus, in_spark, in_this_process, write_corpus
from loadgen.spark import SparkSettings, spark_session
from loadgen.topics import TopicPlan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark
PLAN = TopicPlan(2000, 9, seed=7)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark_session(SparkSettings("test", cores=2)) as started:
        yield started


def rows(corpus: Corpus) -> list[dict[str, Any]]:
    return [row for file in corpus.files for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_spark_makes_the_rows_of_the_process_executor(
    session: Any, tmp_path: Path, parts: int
) -> None:
    # Given
    expected = write_corpus(PLAN, tmp_path / "process", 1, in_this_process(lambda done: None))
    told: list[int] = []
    # When
    corpus = write_corpus(PLAN, tmp_path / "spark", parts, in_spark(session, told.append))
    # Then
    assert len(corpus.files) == parts
    assert rows(corpus) == rows(expected)
    assert corpus.manifest == expected.manifest
    assert told[-1] == parts
