"""Listings that include system topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.stores.store import NamespaceSnapshot
    from broker.topic_lists.sequence import TopicSequence

_PERSISTENT = b"persistent:"


def with_system_topics(
    snapshot: NamespaceSnapshot, sequences: Sequence[TopicSequence]
) -> tuple[TopicSequence, ...]:
    """Return sequences of a snapshot with the system topics of their domains, in order."""
    persistent = [name for name in snapshot.system if name.startswith(_PERSISTENT)]
    others = [name for name in snapshot.system if not name.startswith(_PERSISTENT)]
    return tuple(
        sequence.apply(persistent if sequence is snapshot.persistent else others, ())
        for sequence in sequences
    )
