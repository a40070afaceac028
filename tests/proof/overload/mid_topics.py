"""The namespaces of the recorded overload: one topic of 4,000 partitions in each.

A listing of each is a command of COMMAND_BYTES and is estimated at HEAP_BYTES, as on a real broker,
whatever the namespace's name: the topic's name pads names to 89 bytes.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from broker.listing.responses import topics_response
from broker.topic_lists.listing import TopicListing
from broker.topic_lists.sequence import TopicSequence
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.proof.result import ProofError

PARTITIONS = 4_000
PREFIX_BYTES = 89
"""Bytes of a name up to and including ``-partition-``."""
COMMAND_BYTES = 378_913
HEAP_BYTES = 498_890
FRAME_BYTES = COMMAND_BYTES + 8
MID = "public/mid"
_PARTITION = "-partition-"


def mid_names(namespace: str, partitions: int = PARTITIONS) -> list[str]:
    """Return the full names of the partitions of a namespace's topic."""
    start = f"persistent://{namespace}/"
    topic = "t" * (PREFIX_BYTES - len(start) - len(_PARTITION))
    return [f"{start}{topic}{_PARTITION}{index}" for index in range(partitions)]


@lru_cache(maxsize=256)
def mid_expectation(namespace: str) -> Namespace:
    """Return the expected listing of a namespace."""
    return Namespace(name=namespace, topics=PARTITIONS, hash=topics_hash(mid_names(namespace)))


def check_recorded_sizes() -> None:
    """Check that the names match the recording.

    Raises:
        ProofError: Command or heap estimate differ from the recorded sizes.
    """
    listing = TopicListing(TopicSequence.from_names([name.encode() for name in mid_names(MID)]))
    response = topics_response(1, listing, listing.hash, filtered=False, changed=True)
    found = response.command_bytes, listing.estimated_bytes
    if found != (COMMAND_BYTES, HEAP_BYTES):
        raise ProofError(f"a listing's command and estimate are {found}, not as recorded")


def write_mid_topics(path: Path, namespaces: Sequence[str]) -> None:
    """Write the topics of namespaces to a Parquet file, a row group each."""
    schema = pa.schema({"namespace": pa.string(), "topic": pa.string()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for namespace in namespaces:
            names = mid_names(namespace)
            writer.write_table(pa.table([[namespace] * len(names), names], schema=schema))
