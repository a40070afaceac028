"""Names of topics and namespaces, parsed as Pulsar's TopicName and NamespaceName do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from proto.excerpts import quoted

MAX_NAME_BYTES = 2_048
"""Most UTF-8 bytes of the full name of a created topic."""


_NAMED_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
_PARTITION = re.compile(r"-partition-(0|[1-9][0-9]{0,9})\Z")
PARTITION_SEPARATOR = "-partition-"
PERSISTENT = "persistent"
NON_PERSISTENT = "non-persistent"
DOMAINS = (PERSISTENT, NON_PERSISTENT)
_DOMAINS = {domain: domain for domain in DOMAINS}
JAVA_WHITESPACE = "\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000"
"""Java's white space, for a character class of ``re``, ``regex`` or RE2 (recorded: no-break
spaces are not white space)."""
_BLANK = re.compile(f"[{JAVA_WHITESPACE}]*")
_SCHEME = "://"
MAX_PARTITION_INDEX = 2**31 - 1
"""Largest partition number; a larger number is part of the name (upstream: a Java int)."""
MAX_PARTITIONS = 100_000
"""Most partitions of a topic, if maxNumPartitionsPerPartitionedTopic allows as many."""
_PATH_PARTS = 3
MAX_CACHED_NAME_CHARACTERS = 256
"""Most characters of a name whose parsing is cached; clients may send megabytes."""


class InvalidNameError(ValueError):
    """Invalid name of a topic or namespace; the message equals that of a real broker."""


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """A namespace's name, ``tenant/namespace``."""

    tenant: str
    local_name: str

    def __str__(self) -> str:
        return f"{self.tenant}/{self.local_name}"

    @staticmethod
    def parse(text: str) -> NamespaceName:
        """Parse a namespace's name, ``tenant/namespace``.

        Raises:
            InvalidNameError: The text does not have two parts, or has an invalid character.
        """
        short = len(text) <= MAX_CACHED_NAME_CHARACTERS
        return _cached_namespace(text) if short else _namespace(text)

    @staticmethod
    def parse_with_slashes(text: str) -> NamespaceName:
        """Parse a namespace's name, keeping trailing slashes as a real broker does.

        A name with trailing slashes matches no namespace.

        Raises:
            InvalidNameError: See ``parse``.
        """
        bare = text.rstrip("/")
        name = NamespaceName.parse(bare)
        return NamespaceName(name.tenant, name.local_name + text[len(bare) :])


def _namespace(text: str) -> NamespaceName:
    parts = text.split("/", 2)
    if len(parts) != 2:
        raise InvalidNameError(f"Invalid namespace format. namespace: {text}")
    for part in parts:
        if not is_named_entity(part):
            raise InvalidNameError(
                f"Invalid named entity: {quoted(part)} in namespace {quoted(text)}"
            )
    return NamespaceName(*parts)


_cached_namespace = lru_cache(maxsize=4096)(_namespace)


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic's name, ``domain://tenant/namespace/local``.

    The local name may contain any character.
    """

    domain: str
    namespace: NamespaceName
    local_name: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local_name}"

    @property
    def persistent(self) -> bool:
        """True if the topic belongs to the persistent domain."""
        return self.domain == PERSISTENT

    @property
    def partition_index(self) -> int:
        """The number after the last ``-partition-``; -1 if the topic is not a partition."""
        return partition_index(self.local_name)

    @property
    def partitioned_name(self) -> TopicName:
        """The topic to which this partition belongs; this topic itself if it is not a partition."""
        return TopicName(self.domain, self.namespace, without_partition(self.local_name))

    @staticmethod
    def parse(text: str) -> TopicName:
        """Parse a full topic name or a short one, ``local`` or ``tenant/namespace/local``.

        Raises:
            InvalidNameError: With a real broker's error sentence.
        """
        domain, parts = _full_parts(text) if _SCHEME in text else (PERSISTENT, _short_parts(text))
        if is_blank(parts[2]):
            raise InvalidNameError(
                f"Invalid topic name: {text}. Topic local name must not be blank."
            )
        for part in parts[:2]:
            if not is_named_entity(part):
                raise InvalidNameError(f"Invalid named entity: {part}")
        return TopicName(domain, NamespaceName(parts[0], parts[1]), parts[2])


def _full_parts(text: str) -> tuple[str, list[str]]:
    """Return a full topic name's domain, and its tenant, namespace and local name.

    The domain may be in upper or lower case.
    """
    domain, path = text.split(_SCHEME, 1)
    parts = path.split("/", _PATH_PARTS)
    if not all(parts[:-1]) or (len(parts) > _PATH_PARTS and not parts[-1]):
        raise _invalid(path)
    if len(parts) > _PATH_PARTS:
        raise InvalidNameError(
            "V1 topic names (with cluster component) are no longer supported. Please use the "
            f"V2 format: '<domain>://tenant/namespace/topic'. Got: {text}"
        )
    if len(parts) != _PATH_PARTS:
        raise _invalid(text)
    known = _DOMAINS.get(domain.casefold())
    if known is None:
        raise InvalidNameError(f"Invalid topic domain: '{domain}'")
    return known, parts


def _short_parts(text: str) -> list[str]:
    """Return the tenant, namespace and local name of a short topic name.

    Follows upstream's TopicName.splitBySlash.
    """
    # At most four parts are split off: a client may send a megabyte of slashes.
    if text.startswith("/") or "//" in text:
        raise _invalid(text)
    parts = text.split("/", _PATH_PARTS)
    if len(parts) == 1:
        return ["public", "default", text]
    if len(parts) != _PATH_PARTS:
        raise InvalidNameError(
            f"Invalid short topic name '{text}', it should be in the format of "
            "<tenant>/<namespace>/<topic> or <topic>"
        )
    return parts


def _invalid(path: str) -> InvalidNameError:
    return InvalidNameError(f"Invalid topic name {path}")


def namespace_of(full_name: str) -> str:
    """Return the namespace in a topic's full name, without validating the name."""
    tenant, _, rest = full_name.partition("://")[2].partition("/")
    return f"{tenant}/{rest.partition('/')[0]}"


def is_named_entity(text: str) -> bool:
    """Return True if a text is a valid name of a tenant or namespace."""
    return _NAMED_ENTITY.fullmatch(text) is not None


def is_blank(text: str) -> bool:
    """Return True if a text is empty or only white space, as Java defines it."""
    return _BLANK.fullmatch(text) is not None


def partition_index(name: str) -> int:
    """Return the partition number at the end of a topic name; -1 if it names no partition."""
    found = _PARTITION.search(name)
    if found is None:
        return -1
    index = int(found.group(1))
    return index if index <= MAX_PARTITION_INDEX else -1


def without_partition(name: str) -> str:
    """Return a topic name without its suffix ``-partition-N``, if it has one."""
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
    """Return True if a full topic name is that of a system topic, which topic lists omit.

    Source: upstream TopicList.filterSystemTopic, SystemTopicNames.
    """
    if is_transaction_topic(name):
        return True
    return without_partition(name).rsplit("/", 1)[-1] in _SYSTEM_LOCAL_NAMES


def is_transaction_topic(name: str) -> bool:
    """Return True if brokers use the topic internally, for transactions.

    Source: upstream SystemTopicNames.isTransactionInternalName.
    """
    base = without_partition(name)
    return base.endswith(_PENDING_ACK_SUFFIX) or base.startswith(_SYSTEM_PREFIXES)
