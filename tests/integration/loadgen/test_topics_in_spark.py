"""Spark makes, reads and sorts the same topics as one process, with one task or two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from loadgen.topics.corpus import Corpus, write_corpus
from loadgen.topics.data_source import register
from loadgen.topics.executors import in_spark, in_this_process
from loadgen.topics.listed import write_listed_corpus
from loadgen.topics.plan import TopicPlan, TopicShape
from tests.support.runs.shared_spark import SharedSpark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLAN = TopicPlan(400, 9, seed=7)
SKEWED = replace(PLAN, shape=TopicShape(namespace_skew=1, non_persistent_share=0.1))
HERE = in_this_process(lambda done: None)


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    return shared_spark.session()


def rows(corpus: Corpus) -> list[dict[str, Any]]:
    return [row for file in corpus.files for row in pq.read_table(file).to_pylist()]


def by_topic(frame: Any) -> dict[str, dict[str, Any]]:
    return {row.topic: row.asDict() for row in frame.collect()}


def as_maps(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Return a corpus's rows by topic, in Spark's form."""
    return {row["topic"]: {**row, "properties": dict(row["properties"])} for row in rows(corpus)}


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_spark_writes_the_corpus_of_one_process(spark: SparkSession, tmp_path, parts: int) -> None:
    expected = write_corpus(PLAN, tmp_path / "process", 1, HERE)
    told: list[int] = []
    corpus = write_corpus(PLAN, tmp_path / "spark", parts, in_spark(spark, told.append))
    assert len(corpus.files) == parts
    assert rows(corpus) == rows(expected)
    assert corpus.manifest == expected.manifest
    assert told[-1] == parts


def test_spark_reads_the_parquet_files_of_a_corpus(spark: SparkSession, tmp_path: Path) -> None:
    corpus = write_corpus(SKEWED, tmp_path / "topics", 3, HERE)
    assert by_topic(spark.read.parquet(str(corpus.directory))) == as_maps(corpus)


def test_the_data_source_makes_the_rows_of_a_corpus(spark: SparkSession, tmp_path: Path) -> None:
    expected = write_corpus(SKEWED, tmp_path / "process", 1, HERE)
    register(spark)
    frame = spark.read.format("floodgate").options(
        topics=400, namespaces=9, seed=7, namespace_skew=1, non_persistent_share=0.1,
        partitions_of_frame=7,
    ).load()  # fmt: skip
    assert by_topic(frame) == as_maps(expected)


def test_the_data_source_reads_a_corpus_or_a_list(spark: SparkSession, tmp_path: Path) -> None:
    corpus = write_corpus(SKEWED, tmp_path / "topics", 3, HERE)
    (tmp_path / "names.txt").write_text("persistent://t/n/a\n# none\npersistent://t/n/b\n")
    register(spark)
    read = spark.read.format("floodgate").load
    assert by_topic(read(str(corpus.directory))) == as_maps(corpus)
    found = [tuple(row) for row in read(str(tmp_path / "names.txt")).collect()]
    assert found == [("t", "t/n", f"persistent://t/n/{name}", None, {}) for name in "ab"]


def test_the_data_source_uses_the_folder_and_environment_of_its_registration(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "names.txt").write_text("persistent://t/n/a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    register(spark)
    read = spark.read.format("floodgate").load
    assert read("names.txt").count() == 1
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1|port 9"):
        read("s3a://bucket/topics").count()


def test_the_data_source_has_no_rows_for_an_empty_list(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "names.txt").touch()
    register(spark)
    assert spark.read.format("floodgate").load(str(tmp_path / "names.txt")).count() == 0


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        ("topic string", {}, "floodgate has the columns tenant, namespace, topic, partitions"),
        ("", {"partitions_of_frame": -1}, "partitions_of_frame is -1"),
    ],
)
def test_the_data_source_refuses_invalid_schemas_and_options_with_a_reason(
    spark: SparkSession, schema: str, options: dict[str, Any], said: str
) -> None:
    register(spark)
    reader = spark.read.format("floodgate").options(topics=100, namespaces=1, **options)
    with pytest.raises(PySparkException, match=said):
        (reader.schema(schema) if schema else reader).load().count()


def test_a_table_by_namespace_becomes_the_same_corpus(spark: SparkSession, tmp_path) -> None:
    source = write_corpus(SKEWED, tmp_path / "source", 3, HERE)
    frame = spark.read.parquet(str(source.directory))
    frame.write.partitionBy("tenant", "namespace").parquet(str(tmp_path / "by_namespace"))
    made = write_listed_corpus(tmp_path / "by_namespace", tmp_path / "made", [HERE, HERE]).corpus
    assert made.manifest.namespaces == source.manifest.namespaces
    assert rows(made) == rows(source)


def test_a_list_becomes_the_same_corpus_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    there = in_spark(spark, lambda done: None)
    source = write_corpus(SKEWED, tmp_path / "source", 3, HERE)
    made = write_listed_corpus(source.directory, tmp_path / "made", [there, there]).corpus
    assert rows(made) == rows(source)
