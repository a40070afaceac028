"""Decisions about changes of topics that all stores share: conditions, feed entries, properties.

The functions are pure; the stores wait and write.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, compress, repeat
from typing import TYPE_CHECKING

from broker.stores.changes import (
    MAX_TOLD_NAMES,
    Change,
    NamespaceMissingError,
    TopicChangedError,
    TopicExistsError,
    TopicMissingError,
    TopicState,
)
from broker.stores.properties import PropertyRows
from proto.names import without_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker.stores.changes import NamespaceChanges, TopicChanges
    from broker.stores.store import NamespaceSnapshot
    from proto.names import NamespaceName

MANY_NAMES = 2_000
"""Number of names above which a change is computed off the event loop."""
NAMES_PER_LOOKUP = 64
"""Names added to a set in the time of one lookup."""
COUNTED_TOPICS = (1_000, 50_000)
"""Most topics with a property counted by a database to find the rarest of several properties."""


def is_large(changes: TopicChanges) -> bool:
    """Return True if a change has so many names that it must be computed off the event loop."""
    properties = changes.properties.pairs if changes.properties is not None else 0
    names = len(changes.added) + len(changes.removed) + len(changes.partitioned)
    return names + properties > MANY_NAMES


def parted(
    changes: Sequence[NamespaceChanges],
) -> tuple[list[NamespaceChanges], list[NamespaceChanges]]:
    """Split changes into those to commit one by one, and those to commit together.

    Small changes that only add topics are committed together.
    """
    apart: list[NamespaceChanges] = []
    together: list[NamespaceChanges] = []
    for one in changes:
        plain = one[1].adds_only and keeps_all_properties(one[1]) and not is_large(one[1])
        (together if plain else apart).append(one)
    return apart, together


def check_conditions(exists: Callable[[str], bool] | None, changes: TopicChanges) -> None:
    """Raise an error if a change requires a name that is missing, or lacks one that exists.

    Args:
        exists: Tells whether a full name belongs to a topic or partitioned topic; None for a
            missing namespace.
        changes: The change.

    Raises:
        TopicExistsError: A name of ``changes.absent`` exists.
        TopicMissingError: A name of ``changes.present`` does not exist.
        NamespaceMissingError: The namespace is missing and must not be created.
    """
    if exists is None and not changes.creates_namespace:
        raise NamespaceMissingError
    for name in changes.absent:
        if exists is not None and exists(name):
            raise TopicExistsError(f"{name} already exists")
    for name in changes.present:
        if exists is None or not exists(name):
            raise TopicMissingError(f"{name} does not exist")


def check_unchanged(changes: TopicChanges, found: TopicState) -> None:
    """Raise an error if a change's topic was modified after the caller read the topic's state.

    Raises:
        TopicChangedError: The topic has changed.
    """
    if changes.unchanged != found:
        raise TopicChangedError(found)


def settled(
    before: NamespaceSnapshot,
    changes: TopicChanges,
    properties_of: Callable[[str], Mapping[str, str]],
) -> TopicChanges:
    """Return an ``adds_only`` change without what already exists; any other change as it is.

    See ``what_is_new``.
    """
    if not changes.adds_only:
        return changes
    counts: Mapping[str, int] = before.partitioned or {}
    there = _names_there(before, changes)
    kept = {base: properties_of(base) for base in growing(changes, counts, there)}
    return what_is_new(changes, counts, there, kept)


def growing(
    changes: TopicChanges, counts: Mapping[str, int], there: AbstractSet[bytes]
) -> AbstractSet[str]:
    """Return the existing partitioned topics to which a change adds partitions."""
    known = [base for base in changes.partitioned if base in counts]
    if not known:
        return frozenset()
    new = {without_partition(name.decode()) for name in changes.added if name not in there}
    return new.intersection(known)


def looked_up(changes: TopicChanges) -> Iterator[bytes]:
    """Yield the topics and partitioned topics that a change adds, whether they exist or not."""
    return chain(changes.added, (base.encode() for base in changes.partitioned))


def _names_there(before: NamespaceSnapshot, changes: TopicChanges) -> AbstractSet[bytes]:
    """Return those of the names of ``looked_up`` that already exist.

    The set may hold all names of the namespace instead, if collecting them is cheaper.
    """
    if before.holds_nothing and not before.partitioned:
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
    """Return an addition reduced to missing names, their properties and increased partition counts.

    An existing topic never becomes a partitioned topic, even if partitions are added beside it.

    Args:
        changes: The addition; all or none of the names have properties.
        counts: Partition counts of the namespace's partitioned topics.
        there: Existing names of ``looked_up``, topics and partitioned topics.
        kept: Properties of growing topics, inherited by new partitions.
    """
    new = [name not in there for name in changes.added] if there else []
    added, properties = changes.added, changes.properties
    if not all(new):
        if properties is not None:
            properties = properties.filter(new)
            added = properties.names
        else:
            added = list(compress(added, new))
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
    """Return the properties of new names; a partition without any gets its topic's properties.

    A partition without properties of its own inherits its partitioned topic's.
    """
    of_topics = (kept.get(without_partition(name.decode()), {}) for name in added)
    owned: Iterable[Mapping[str, str]] = own.rows() if own is not None else repeat({})
    return PropertyRows.from_rows(
        added, [mine or its for mine, its in zip(owned, of_topics, strict=False)]
    )


def feed_change(
    namespace: NamespaceName, before: NamespaceSnapshot, version: int, changes: TopicChanges
) -> Change:
    """Return the feed entry for a change, with the names that it really added and removed."""
    if len(changes.added) + len(changes.removed) > MAX_TOLD_NAMES:
        return Change(namespace, version, complete=False)
    gone = frozenset(changes.removed)
    added = [name for name in dict.fromkeys(changes.added) if name not in gone]
    if before.holds_nothing:
        return Change(namespace, version, added)
    return Change(
        namespace,
        version,
        [name for name in added if not before.holds(name)],
        [name for name in dict.fromkeys(changes.removed) if before.holds(name)],
    )


def end_of(namespace: NamespaceName, last: NamespaceSnapshot) -> Change:
    """Return the feed entry for the deletion of a namespace."""
    version, sequences = last.version + 1, (last.non_persistent, last.persistent)
    if sum(len(one) for one in sequences) + len(last.system) > MAX_TOLD_NAMES:
        return Change(namespace, version, complete=False)
    names = chain.from_iterable(block.names() for one in sequences for block in one.blocks())
    return Change(namespace, version, (), sorted((*names, *last.system)))


def properties_to_delete(changes: TopicChanges) -> list[bytes]:
    """Return the names of topics whose properties a change deletes."""
    forgotten = [name.encode() for name, count in changes.partitioned.items() if not count]
    return [*changes.removed, *forgotten]


def keeps_all_properties(changes: TopicChanges) -> bool:
    """Return True if all properties of a change are stored, as they belong to added names."""
    rows = changes.properties
    return rows is None or (rows.names is changes.added and not changes.removed)


def properties_to_keep(exists: Callable[[str], bool], changes: TopicChanges) -> PropertyRows | None:
    """Return a change's properties without those of names that will not exist after it.

    Args:
        exists: Tells whether a full name exists after the change.
        changes: The change.
    """
    rows = changes.properties
    if rows is None or keeps_all_properties(changes):
        return rows
    there = [exists(name.decode()) for name in rows.names]
    return rows if all(there) else rows.filter(there)


def storable(properties: Mapping[str, str]) -> bool:
    """Return True if properties can be stored as UTF-8: they contain no lone surrogate."""
    try:
        "".join([*properties, *properties.values()]).encode()
    except UnicodeEncodeError:
        return False
    return True
