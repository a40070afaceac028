"""Synthetic topics as a data source of Spark: the rows of ``loadgen topics``, without files.

    from loadgen.topics.data_source import register

    register(spark)
    topics = spark.read.format("floodgate_topics").option("topics", 1_000_000).load()

Options are ``topics``, ``namespaces``, ``seed``, ``partitions_of_frame`` (tasks that read it; the
rows do not depend on it), and every field of :class:`loadgen.topics.plan.TopicShape` by its
name. Python data sources came with Spark 4.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from loadgen.topics.plan import TopicPlan, TopicShape, plan_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

NAME = "floodgate_topics"
_SCHEMA = (
    "tenant string, namespace string, topic string, partitions int, properties map<string,string>"
)
_ROWS_PER_PARTITION = 1_000_000
_ROWS_PER_BATCH = 100_000


@dataclass(frozen=True)
class _Options(TopicShape):
    topics: int = 1_000_000
    namespaces: int = 100
    seed: int = 7
    partitions_of_frame: int = 0


def register(session: SparkSession) -> None:
    """Make ``spark.read.format("floodgate_topics")`` known to a session."""
    session.dataSource.register(FloodgateTopics)


class FloodgateTopics(DataSource):  # type: ignore[misc]
    """The data source; Spark makes one for each ``load()``."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` calls it."""
        return NAME

    def schema(self) -> str:
        """Return the columns of a corpus."""
        return _SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ANN401
        """Return what plans the tasks and reads in them."""
        del schema
        plan, parts = plan_of_options(self.options)
        return _Reader(plan, parts)


def plan_of_options(options: Mapping[str, str]) -> tuple[TopicPlan, int]:
    """Return the plan that options ask for, and the number of tasks.

    Raises:
        ValueError: An option is unknown or has a value that it cannot have.
    """
    known = [each.name for each in fields(_Options)]
    given = {name.lower(): text for name, text in options.items()}
    for name in given.keys() - known:
        raise ValueError(f"{name!r} is no option of {NAME}; it has {', '.join(known)}")
    try:
        asked = TypeAdapter(_Options).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"option {name} of {NAME}: " for name in first["loc"])
        raise ValueError(f"{place}{first['msg']}") from None
    shape = TopicShape(**{each.name: getattr(asked, each.name) for each in fields(TopicShape)})
    plan = TopicPlan(asked.topics, asked.namespaces, asked.seed, shape)
    return plan, asked.partitions_of_frame or -(-plan.topics // _ROWS_PER_PARTITION)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, plan: TopicPlan, parts: int) -> None:
        self._plan = plan
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part, _ in enumerate(plan_parts(self._plan, self._parts))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        from loadgen.topics.rows import namespace_rows

        for namespace in plan_parts(self._plan, self._parts)[partition.value]:
            rows = namespace_rows(self._plan, namespace)
            yield from pa.Table.from_batches([rows]).to_batches(_ROWS_PER_BATCH)
