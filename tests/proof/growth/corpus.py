"""Names in one namespace and in many, with known matches of patterns.

Every name has 100 bytes. Of ten consecutive topics four are the partitions of one topic. One topic
in a hundred is called rare, the rest often; all contain ``app``, and are numbered.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NAME_BYTES = 100
ENTRY_BYTES = NAME_BYTES + 2
"""A name on the wire."""
NAMES_PER_NAMESPACE = 10
"""In a corpus of many namespaces."""
TENANT = "load"
"""Tenant of every second of many namespaces; the rest have a tenant each."""
TEAMS = 100
_GROUP, _PLAIN = 10, 6
_RARE = 100
_ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Corpus:
    """The topics of a run.

    Attributes:
        names: Number of names.
        namespaces: Number of namespaces, of equal size.
    """

    names: int
    namespaces: int

    @property
    def each(self) -> int:
        """Names in a namespace."""
        return self.names // self.namespaces

    @property
    def title(self) -> str:
        where = "1 namespace" if self.namespaces == 1 else f"{self.namespaces:,} namespaces"
        return f"{self.names:,} names in {where}"

    def namespace(self, number: int) -> str:
        return f"t{number:07d}/own" if number % 2 else f"{TENANT}/n{number:07d}"

    def name(self, number: int) -> str:
        prefix = f"persistent://{self.namespace(number // self.each)}/"
        group, place = divmod(number, _GROUP)
        kind = "rare" if group % _RARE == 0 else "often"
        if place < _PLAIN:
            return f"{prefix}{kind}-{number:09d}-app".ljust(NAME_BYTES, "x")
        partition = f"-partition-{place - _PLAIN}"
        base = f"{prefix}{kind}-{group:09d}p-app"
        return base.ljust(NAME_BYTES - len(partition), "x") + partition

    @property
    def topic(self) -> str:
        """A topic without partitions, of the first namespace."""
        return self.name(0)

    @property
    def partitioned(self) -> str:
        """A topic with four partitions, of the first namespace."""
        return self.name(_PLAIN).rpartition("-partition-")[0]

    def write(self, path: Path) -> None:
        """Write Parquet for an import: two properties a topic."""
        schema = pa.schema(
            {
                "namespace": pa.string(),
                "topic": pa.string(),
                "properties": pa.map_(pa.string(), pa.string()),
            }
        )
        with pq.ParquetWriter(path, schema) as writer:
            for first in range(0, self.names, _ROWS_AT_ONCE):
                numbers = range(first, min(self.names, first + _ROWS_AT_ONCE))
                columns = [
                    pa.array([self.namespace(number // self.each) for number in numbers]),
                    pa.array(map(self.name, numbers), pa.string()),
                    _properties(np.arange(numbers.start, numbers.stop)),
                ]
                writer.write_table(pa.table(columns, schema), row_group_size=_ROWS_AT_ONCE)


def _properties(numbers: np.ndarray) -> pa.MapArray:
    teams = pa.array([f"team-{number}" for number in range(TEAMS)])
    values = teams.take(pa.array(numbers.repeat(2) % TEAMS))
    keys = pa.array(["team", "owner"]).take(pa.array(np.tile([0, 1], len(numbers))))
    offsets = pa.array(np.arange(len(numbers) + 1, dtype=np.int32) * 2)
    return pa.MapArray.from_arrays(offsets, keys, values)
