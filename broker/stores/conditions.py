"""Judges a change, the same for every store: its conditions, what it tells, what it leaves.

Plain decisions; the stores wait and write.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.stores.changes import (
    NamespaceMissingError,
    TopicChangedError,
    TopicExistsError,
    TopicMissingError,
    TopicState,
)
from broker.stores.feed import MAX_TOLD_NAMES, Change
from broker.stores.property_rows import PROPERTIES_TYPE, PropertyRows
from proto.names import without_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker.stores.changes import TopicChanges
    from broker.stores.store import NamespaceSnapshot
    from proto.names import NamespaceName

MANY_NAMES = 2_000
"""Names that take longer to put into a snapshot than the event loop may be held."""
NAMES_PER_LOOKUP = 64
"""To look one name up costs as much as to take this many into a set."""
COUNTED_TOPICS = (1_000, 50_000)
"""Most topics with a property that a database counts to find the rarest of several properties."""


def is_large(changes: TopicChanges) -> bool:
    """Tell whether a change is to be worked out off the event loop."""
    properties = len(changes.properties.column.items) if changes.properties is not None else 0
    names = len(changes.added) + len(changes.removed) + len(changes.partitioned)
    return names + properties > MANY_NAMES


def check_conditions(exists: Callable[[str], bool] | None, changes: TopicChanges) -> None:
    """See whether a change may be made.

    Args:
        exists: Tells whether a full name is that of a topic or partitioned topic; None for a
            namespace that does not exist.
        changes: What is to be changed.

    Raises:
        TopicExistsError: One of ``changes.absent`` exists.
        TopicMissingError: One of ``changes.present`` does not exist.
        NamespaceMissingError: There is no namespace, and none is to be made.
    """
    if exists is None and not changes.creates_namespace:
        raise NamespaceMissingError
    for name in changes.absent:
        if exists is not None and exists(name):
            raise TopicExistsError(name)
    for name in changes.present:
        if exists is None or not exists(name):
            raise TopicMissingError(name)


def check_unchanged(changes: TopicChanges, found: TopicState) -> None:
    """See whether the topic that a change is for is as it was seen.

    Raises:
        TopicChangedError: It is not.
    """
    if changes.unchanged != found:
        raise TopicChangedError(found)


def settled(
    before: NamespaceSnapshot,
    changes: TopicChanges,
    properties_of: Callable[[str], Mapping[str, str]],
) -> TopicChanges:
    """Return what a change comes to in a version: of one that only adds, what is new."""
    if not changes.adds_only:
        return changes
    counts, there = before.partitioned, _names_there(before, changes)
    kept = {base: properties_of(base) for base in growing(changes, counts, there)}
    return what_is_new(changes, counts, there, kept)


def growing(
    changes: TopicChanges, counts: Mapping[str, int], there: AbstractSet[bytes]
) -> AbstractSet[str]:
    """Return the partitioned topics that are there and get new partitions; see what_is_new."""
    known = [base for base in changes.partitioned if base in counts]
    if not known:
        return frozenset()
    new = {without_partition(name.decode()) for name in changes.added if name not in there}
    return new.intersection(known)


def looked_up(changes: TopicChanges) -> Iterator[bytes]:
    """Yield the names of which an addition has to know whether they are there."""
    return chain(changes.added, (base.encode() for base in changes.partitioned))


def _names_there(before: NamespaceSnapshot, changes: TopicChanges) -> AbstractSet[bytes]:
    """Return those of the names looked up that are there, or all that are there."""
    if before.empty and not before.system:
        return frozenset()
    count = len(before.persistent) + len(before.non_persistent) + len(before.partitioned)
    if len(changes.added) * NAMES_PER_LOOKUP > count:
        listed = (before.persistent.names(), before.non_persistent.names(), before.system)
        return {*chain(*listed), *(name.encode() for name in before.partitioned)}
    return {name for name in looked_up(changes) if before.exists(name.decode())}


def what_is_new(
    changes: TopicChanges,
    counts: Mapping[str, int],
    there: AbstractSet[bytes],
    kept: Mapping[str, Mapping[str, str]],
) -> TopicChanges:
    """Return what an addition adds: names that are not there, properties of these, growth.

    A topic without partitions stays one, whatever partitions are named beside it.

    Args:
        changes: The addition; of what it adds all or nothing is described.
        counts: How many partitions its partitioned topics have.
        there: Those of ``looked_up`` that are there, as topics or partitioned topics.
        kept: The properties of those that are growing, which their new partitions carry, too.
    """
    new = [name not in there for name in changes.added] if there else []
    added, properties = changes.added, changes.properties
    if not all(new):
        added = [name for name, is_new in zip(added, new, strict=True) if is_new]
        if properties is not None:
            properties = PropertyRows(added, properties.column.filter(pa.array(new)))
    if any(kept.values()):
        properties = _as_their_topics(added, properties, kept)
    bases = {name.encode(): name for name in changes.partitioned if name not in counts}
    plain = {bases[name] for name in chain(there, added) if name in bases}
    grown = {
        name: n
        for name, n in changes.partitioned.items()
        if n > counts.get(name, 0) and name not in plain
    }
    return replace(changes, added=added, properties=properties, partitioned=grown, adds_only=False)


def _as_their_topics(
    added: Sequence[bytes], own: PropertyRows | None, kept: Mapping[str, Mapping[str, str]]
) -> PropertyRows:
    """Give new partitions that have no properties of their own those of their topics."""
    of_topics = [kept.get(without_partition(name.decode())) for name in added]
    pairs = [list(properties.items()) if properties else None for properties in of_topics]
    column = pa.array(pairs, PROPERTIES_TYPE)
    if own is not None:
        has_own = np.diff(own.column.offsets.to_numpy()) > 0
        has_own &= own.column.is_valid().to_numpy(zero_copy_only=False)
        column = pc.if_else(pa.array(has_own), own.column, column)
    return PropertyRows(added, column)


def told_change(
    namespace: NamespaceName, before: NamespaceSnapshot, version: int, changes: TopicChanges
) -> Change:
    """Return what the feed tells of a change: the names that really came and went."""
    if len(changes.added) + len(changes.removed) > MAX_TOLD_NAMES:
        return Change(namespace, version, complete=False)
    gone = frozenset(changes.removed)
    added = [name for name in dict.fromkeys(changes.added) if name not in gone]
    return Change(
        namespace,
        version,
        [name for name in added if not before.holds(name)],
        [name for name in dict.fromkeys(changes.removed) if before.holds(name)],
    )


def undescribed(changes: TopicChanges) -> list[bytes]:
    """Return the names that have no properties any more, whatever they had."""
    forgotten = [name.encode() for name, count in changes.partitioned.items() if not count]
    return [*changes.removed, *forgotten]


def all_described(changes: TopicChanges) -> bool:
    """Tell whether the properties are just those of what is added: then none is to be left out."""
    rows = changes.properties
    return rows is None or (rows.names is changes.added and not changes.removed)


def described(exists: Callable[[str], bool], changes: TopicChanges) -> PropertyRows | None:
    """Return the properties to keep: those of what is there after the change.

    Args:
        exists: Tells whether a full name is there after the change.
        changes: What is changed.
    """
    rows = changes.properties
    if rows is None or all_described(changes):
        return rows
    there = [exists(name.decode()) for name in rows.names]
    return rows if all(there) else rows.filter(there)


def storable(properties: Mapping[str, str]) -> bool:
    """Tell whether some topic may have these properties: no UTF-8 holds half a character."""
    try:
        "".join([*properties, *properties.values()]).encode()
    except UnicodeEncodeError:
        return False
    return True
