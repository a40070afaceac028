"""A Spark data source of topics, which are generated or read from a list or a corpus.

    from loadgen.topics.data_source import register

    register(spark)
    made_up = spark.read.format("floodgate").option("topics", 1_000_000).load()
    own = spark.read.format("floodgate").load("topics.txt")

With ``path`` the rows come from a text of one name a line, a Parquet file, or a folder of such
files, as in ``loadgen topics --from``; an invalid name ends the read, unless ``skip_invalid`` is
set. Partitions not stated in a text are null.

Without ``path`` the topics are generated. Options are then ``topics``, ``namespaces``, ``seed``,
``partitions_of_frame`` (number of reading tasks; the rows do not depend on the number), and every
field of :class:`loadgen.topics.plan.TopicShape`. Python data sources came with Spark 4.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from pydantic import TypeAdapter, ValidationError
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from loadgen.stored import StoredPath, placed, store_variables
from loadgen.topics.lists import pieces_of, rows_of, with_tenants
from loadgen.topics.plan import TopicPlan, TopicShape, plan_parts
from proto.invalid_rows import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

NAME = "floodgate"
_SCHEMA = (
    "tenant string, namespace string, topic string, partitions int, properties map<string,string>"
)
_ROWS_PER_PARTITION = 1_000_000
_ROWS_PER_BATCH = 100_000


@dataclass(frozen=True)
class _OfList:
    path: str
    skip_invalid: bool = False


@dataclass(frozen=True)
class _MadeUp(TopicShape):
    topics: int = 1_000_000
    namespaces: int = 100
    seed: int = 7
    partitions_of_frame: int = 0


def register(session: SparkSession) -> None:
    """Make ``spark.read.format("floodgate")`` usable in a Spark session."""
    here = {"folder": str(Path.cwd()), "variables": store_variables()}
    session.dataSource.register(type("FloodgateTopics", (FloodgateTopics,), here))


class FloodgateTopics(DataSource):  # type: ignore[misc]
    """The Spark data source that returns topics.

    Spark creates an instance of it for each ``load()``, in a separate process.

    Attributes:
        folder: The folder from which relative paths are resolved.
        variables: The environment variables with an object store's address and credentials.
    """

    folder = ""
    variables: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def name(cls) -> str:
        """Return the name of the data source, as ``spark.read.format`` takes it."""
        return NAME

    def schema(self) -> str:
        """Return the columns of a corpus as Spark's schema text."""
        return _SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ANN401
        """Return a reader that divides the topics among Spark tasks and reads them in each task."""
        if schema.names != (names := [each.split()[0] for each in _SCHEMA.split(", ")]):
            raise ValueError(f"{NAME} has the columns {', '.join(names)}: select some of them")
        if "path" in self.options:
            asked = _options(_OfList, self.options)
            return _ListReader(asked, self.folder, dict(self.variables))
        return _Reader(*plan_of_options(self.options))


def plan_of_options(options: Mapping[str, str]) -> tuple[TopicPlan, int]:
    """Return the topic plan that options describe, and the number of reading tasks.

    Raises:
        ValueError: An option is unknown or has an invalid value.
    """
    asked = _options(_MadeUp, options)
    shape = TopicShape(**{each.name: getattr(asked, each.name) for each in fields(TopicShape)})
    if asked.partitions_of_frame < 0:
        raise ValueError(f"partitions_of_frame is {asked.partitions_of_frame}; 0 lets it choose")
    plan = TopicPlan(asked.topics, asked.namespaces, asked.seed, shape)
    return plan, asked.partitions_of_frame or -(-plan.topics // _ROWS_PER_PARTITION)


def _options(kind: Any, options: Mapping[str, str]) -> Any:  # noqa: ANN401 - of that kind
    known = [each.name for each in fields(kind)]
    given = {name.lower(): text for name, text in options.items()}
    for name in given.keys() - known:
        raise ValueError(f"{name!r} is no option of {NAME}; it has {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"option {name} of {NAME}: " for name in first["loc"])
        raise ValueError(f"{place}{first['msg']}") from None


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, plan: TopicPlan, parts: int) -> None:
        self._plan = plan
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part, _ in enumerate(plan_parts(self._plan, self._parts))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        from loadgen.topics.rows import namespace_rows

        for namespace in plan_parts(self._plan, self._parts)[partition.value]:
            yield from namespace_rows(self._plan, namespace).to_batches(_ROWS_PER_BATCH)


class _ListReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, asked: _OfList, folder: str, variables: Mapping[str, str]) -> None:
        self._skip_invalid = asked.skip_invalid
        found = placed(Path(asked.path))
        self._path = found if isinstance(found, StoredPath) else Path(folder, found).resolve()
        self._variables = variables

    def partitions(self) -> Sequence[InputPartition]:
        with patch.dict(os.environ, self._variables):
            return [InputPartition(piece) for piece in pieces_of(self._path)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        # Without partitions of ours Spark reads a partition of its own.
        pieces = [] if partition.value is None else [partition.value]
        invalid = InvalidRows(self._path)
        with patch.dict(os.environ, self._variables):
            for rows in rows_of(pieces, invalid):
                if invalid.count and not self._skip_invalid:
                    raise ValueError(f"{invalid}\noption skip_invalid of {NAME} leaves them out")
                yield from with_tenants(rows).to_batches()
