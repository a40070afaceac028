"""Paths ``tenant/namespace/topic``, which are what clients' patterns match."""

from __future__ import annotations

import re

from proto.names import MAX_PARTITION_INDEX, NON_PERSISTENT, PARTITION_SEPARATOR, PERSISTENT

DOMAIN_PREFIXES = (f"{PERSISTENT}://".encode(), f"{NON_PERSISTENT}://".encode())
_SEPARATOR = PARTITION_SEPARATOR.encode()
_PARTITION = re.compile(rb"-partition-(0|[1-9][0-9]{0,9})\Z")


def path_of(name: bytes) -> bytes:
    """Return the path of a full topic name: no domain, and no suffix ``-partition-N``."""
    path = name.split(b"://", 1)[-1]
    if _SEPARATOR in path:
        found = _PARTITION.search(path)
        if found is not None and int(found.group(1)) <= MAX_PARTITION_INDEX:
            return path[: found.start()]
    return path


def common_domain(first: bytes, last: bytes) -> bytes:
    """Return the domain prefix of all names in a sorted list; empty if they differ in it.

    ``first`` and ``last`` are the ends of the list: a prefix of both is a prefix of all.
    """
    prefixes = (prefix for prefix in DOMAIN_PREFIXES if first.startswith(prefix))
    return next((prefix for prefix in prefixes if last.startswith(prefix)), b"")
