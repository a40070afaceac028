"""The recorded overload's namespaces: topics of 4,000 partitions.

A listing of each is a command of COMMAND_BYTES and is estimated at HEAP_BYTES, as on a real broker,
whatever the namespace's name: the topic's name pads names to 89 bytes.

Source: facts recorded on Apache Pulsar 4.2.4, overload, point 3.
"""

PARTITIONS = 4_000
PREFIX_BYTES = 89
"""Bytes of a name up to and including ``-partition-``."""
COMMAND_BYTES = 378_913
HEAP_BYTES = 498_890
_PARTITION = "-partition-"


def mid_names(namespace: str, partitions: int = PARTITIONS) -> list[str]:
    """Return the full names of the partitions of a namespace's topic."""
    start = f"persistent://{namespace}/"
    topic = "t" * (PREFIX_BYTES - len(start) - len(_PARTITION))
    return [f"{start}{topic}{_PARTITION}{index}" for index in range(partitions)]
