"""Names of topics and namespaces, as upstream's TopicName and NamespaceName judge them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from proto.excerpts import quoted

_NAMED_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
_PARTITION = re.compile(r"-partition-(0|[1-9][0-9]*)\Z")
PARTITION_SEPARATOR = "-partition-"
PERSISTENT = "persistent"
NON_PERSISTENT = "non-persistent"
DOMAINS = (PERSISTENT, NON_PERSISTENT)
_SCHEME = "://"
MAX_PARTITION_INDEX = 2**31 - 1
"""Larger numbers are part of the name (upstream: a Java int)."""
MAX_PARTITIONS = 100_000
"""Partitions of one topic, where maxNumPartitionsPerPartitionedTopic allows as many."""
_PATH_PARTS = 3
MAX_CACHED_NAME_CHARACTERS = 256
"""A client may send names of megabytes: those are parsed anew each time."""


class InvalidNameError(ValueError):
    """A name that breaks the rules; the sentence is what a real broker answers."""


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """A namespace, ``tenant/namespace``."""

    tenant: str
    local_name: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.local_name}"

    @staticmethod
    def parse(text: str) -> NamespaceName:
        """Parse ``tenant/namespace``.

        Raises:
            InvalidNameError: Not two parts, or a character that a name may not have.
        """
        short = len(text) <= MAX_CACHED_NAME_CHARACTERS
        return _cached_namespace(text) if short else _namespace(text)


def _namespace(text: str) -> NamespaceName:
    parts = text.split("/")
    if len(parts) != 2:
        raise InvalidNameError(f"Invalid namespace format. namespace: {text}")
    for part in parts:
        if not _NAMED_ENTITY.fullmatch(part):
            raise InvalidNameError(
                f"Invalid named entity: {quoted(part)} in namespace {quoted(text)}"
            )
    return NamespaceName(*parts)


_cached_namespace = lru_cache(maxsize=4096)(_namespace)


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic, ``domain://tenant/namespace/local``; the local name may hold any character."""

    domain: str
    namespace: NamespaceName
    local_name: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local_name}"

    @property
    def persistent(self) -> bool:
        """Whether the topic belongs to the persistent domain."""
        return self.domain == PERSISTENT

    @property
    def partition_index(self) -> int:
        """The number behind the last ``-partition-``; -1 for a topic that is no partition."""
        return partition_index(self.local_name)

    @property
    def partitioned_name(self) -> TopicName:
        """The topic this one is a partition of; itself when it is none."""
        return TopicName(self.domain, self.namespace, without_partition(self.local_name))

    @staticmethod
    def parse(text: str) -> TopicName:
        """Parse a full name or one of the short forms ``local`` and ``tenant/namespace/local``.

        Raises:
            InvalidNameError: With the sentence that a real broker answers.
        """
        domain, path = _split_domain(text)
        parts = path.split("/", 3)
        if len(parts) > _PATH_PARTS:
            raise InvalidNameError(
                "V1 topic names (with cluster component) are no longer supported. Please use the "
                f"V2 format: '<domain>://tenant/namespace/topic'. Got: {text}"
            )
        if len(parts) != _PATH_PARTS or not all(map(_NAMED_ENTITY.fullmatch, parts[:2])):
            raise InvalidNameError(f"Invalid topic name {path}")
        if not parts[2].strip():
            raise InvalidNameError(
                f"Invalid topic name: {text}. Topic local name must not be blank."
            )
        return TopicName(domain, NamespaceName(parts[0], parts[1]), parts[2])


def _split_domain(text: str) -> tuple[str, str]:
    if _SCHEME in text:
        domain, path = text.split(_SCHEME, 1)
        if domain not in DOMAINS:
            raise InvalidNameError(f"Invalid topic domain: '{domain}'")
        return domain, path
    parts = text.split("/")
    if len(parts) == 1:
        if not text:
            raise InvalidNameError(
                f"Invalid topic name: {text}. Topic local name must not be blank."
            )
        return PERSISTENT, f"public/default/{text}"
    if len(parts) != _PATH_PARTS:
        raise InvalidNameError(
            f"Invalid short topic name '{text}', it should be in the format of "
            "<tenant>/<namespace>/<topic> or <topic>"
        )
    return PERSISTENT, text


def partition_index(name: str) -> int:
    """Return the partition number at the end of a name; -1 without one."""
    found = _PARTITION.search(name)
    if found is None:
        return -1
    index = int(found.group(1))
    return index if index <= MAX_PARTITION_INDEX else -1


def without_partition(name: str) -> str:
    """Return the name without its ``-partition-N``."""
    return name if partition_index(name) < 0 else name[: name.rindex(PARTITION_SEPARATOR)]


_SYSTEM_LOCAL_NAMES = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    }
)
_SYSTEM_PREFIXES = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)
_PENDING_ACK_SUFFIX = "__transaction_pending_ack"


def is_system_topic(name: str) -> bool:
    """Tell whether a full topic name is one that listings hide.

    Source: upstream TopicList.filterSystemTopic, SystemTopicNames.
    """
    base = without_partition(name)
    if base.endswith(_PENDING_ACK_SUFFIX) or base.startswith(_SYSTEM_PREFIXES):
        return True
    return base.rsplit("/", 1)[-1] in _SYSTEM_LOCAL_NAMES
