"""The rows of synthetic topics: each is a function of the plan, its seed and its id alone.

The ids of a namespace are dealt to base topics: some plain, the others with 3 to 64 partitions, one
listed name for each partition. A namespace has the same rows in whatever process and order it is
made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadgen.corpus import vocabulary as words
from loadgen.corpus.counter_hash import UInt64s, choices, counter_hash, fractions, permuted32

if TYPE_CHECKING:
    import numpy.typing as npt

    from loadgen.corpus.topic_plan import NamespacePlan, TopicPlan

TOPIC_SCHEMA = pa.schema(
    [
        ("tenant", pa.string()),
        ("namespace", pa.string()),
        ("topic", pa.string()),
        ("partitions", pa.int32()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)
FEWEST_PARTITIONS = 3
MOST_PARTITIONS = 64
_PARTITION_COUNTS = np.array([3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64])
_ENVIRONMENT_WEIGHTS = np.array([0.60, 0.20, 0.15, 0.05])
# The third property: none, tier, owner.
_THIRD_PROPERTY_WEIGHTS = np.array([0.3, 0.4, 0.3])
# One random stream for each decision, so that a new decision changes no old one.
# Number 1 is that of loadgen.corpus.topic_plan.
_PARTITIONS, _LENGTH, _FILLER, _SUBJECT, _EVENT, _PERMUTATION = range(2, 8)
_SQUAD, _ENVIRONMENT, _THIRD, _TIER = range(8, 12)
_UNIQUE_DIGITS = 8
_LENGTH_SPREAD = 12
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@dataclass(frozen=True)
class _Bases:
    """The base topics of one namespace, as parallel arrays."""

    ids: UInt64s
    partitions: npt.NDArray[np.int64]
    """Number of partitions; 0 for a plain topic."""


def namespace_rows(plan: TopicPlan, namespace: NamespacePlan) -> pa.RecordBatch:
    """Return all rows of one namespace, ordered by topic name, in :data:`TOPIC_SCHEMA`."""
    bases = _base_topics(plan, namespace)
    rows_per_base = np.maximum(bases.partitions, 1)
    base_of_row = np.repeat(np.arange(len(bases.ids)), rows_per_base)
    suffix_of_row = _suffix_indexes(bases, rows_per_base)
    prefixes = _base_names(plan, namespace, bases, suffix_of_row)
    names = pc.binary_join_element_wise(
        prefixes.take(pa.array(base_of_row)), _SUFFIXES.take(pa.array(suffix_of_row)), ""
    )
    order = pc.array_sort_indices(names)  # ASCII: the order of bytes is Java's order too
    sorted_bases = base_of_row[order.to_numpy()]
    columns = [
        pa.repeat(pa.scalar(namespace.tenant), namespace.topics),
        pa.repeat(pa.scalar(namespace.name), namespace.topics),
        names.take(order),
        pa.array(bases.partitions[sorted_bases].astype(np.int32)),
        _properties(plan, namespace, bases).take(pa.array(sorted_bases)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=TOPIC_SCHEMA)


_SUFFIXES = pa.array(["", *(f"-partition-{index}" for index in range(MOST_PARTITIONS))])
_SUFFIX_BYTES = np.array([len(suffix) for suffix in _SUFFIXES.to_pylist()])


def _base_topics(plan: TopicPlan, namespace: NamespacePlan) -> _Bases:
    """Deal the names of a namespace to base topics; exactly as many names as planned."""
    in_partitions = namespace.topics - round(namespace.topics * plan.shape.plain_share)
    most_bases = in_partitions // FEWEST_PARTITIONS + 1
    ids = np.arange(namespace.first_id, namespace.first_id + most_bases, dtype=np.uint64)
    # Small topics are more common: a count is as likely as it is small.
    drawn = _PARTITION_COUNTS[
        choices(plan.seed, _PARTITIONS, ids, 1.0 / _PARTITION_COUNTS.astype(np.float64))
    ]
    ends = np.cumsum(drawn)
    whole = int(np.searchsorted(ends, in_partitions, side="right"))
    counts = drawn[:whole].astype(np.int64)
    left = in_partitions - int(counts.sum())
    if left >= FEWEST_PARTITIONS:
        counts, left = np.append(counts, left), 0
    plain = namespace.topics - in_partitions + left
    partitions = np.concatenate([counts, np.zeros(plain, dtype=np.int64)])
    ids = np.arange(namespace.first_id, namespace.first_id + len(partitions), dtype=np.uint64)
    return _Bases(ids, partitions)


def _suffix_indexes(bases: _Bases, rows_per_base: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each row its place in ``_SUFFIXES``: 0 when plain, else partition + 1."""
    starts = np.cumsum(rows_per_base) - rows_per_base
    within = np.arange(rows_per_base.sum()) - np.repeat(starts, rows_per_base)
    return np.where(np.repeat(bases.partitions, rows_per_base) > 0, within + 1, 0)


def _base_names(
    plan: TopicPlan,
    namespace: NamespacePlan,
    bases: _Bases,
    suffix_of_row: npt.NDArray[np.int64],
) -> pa.Array:
    """Return the full names of the base topics, as long as the mean length asks for.

    ``persistent://tenant/namespace/subject.event-`` and a key of hexadecimal digits, of which the
    first eight are unique in the namespace.
    """
    prefix = f"persistent://{namespace.name}/"
    subjects = _words(words.SUBJECTS, counter_hash(plan.seed, _SUBJECT, bases.ids))
    events = _words(words.EVENTS, counter_hash(plan.seed, _EVENT, bases.ids))
    stems = pc.binary_join_element_wise(prefix, subjects, ".", events, "-", "")
    wanted = plan.shape.mean_name_bytes - float(_SUFFIX_BYTES[suffix_of_row].mean())
    spread = (fractions(plan.seed, _LENGTH, bases.ids) * 2 - 1) * _LENGTH_SPREAD
    digits = np.rint(wanted + spread).astype(np.int64) - pc.binary_length(stems).to_numpy()
    keys = _hex_keys(plan, namespace, bases.ids, np.maximum(digits, _UNIQUE_DIGITS))
    return pc.binary_join_element_wise(stems, keys, "")


def _hex_keys(
    plan: TopicPlan, namespace: NamespacePlan, ids: UInt64s, digits: npt.NDArray[np.int64]
) -> pa.Array:
    """Return a key for each base topic: eight unique digits, then random ones."""
    ends = np.cumsum(digits)
    place = np.arange(ends[-1]) - np.repeat(ends - digits, digits)
    key = int(
        counter_hash(plan.seed, _PERMUTATION, np.array([namespace.first_id], dtype=np.uint64))[0]
    )
    unique = np.repeat(permuted32(key, ids - np.uint64(namespace.first_id)), digits)
    # One hash gives sixteen digits; 64 of them are more than the longest name has.
    blocks = np.repeat(ids, digits) * np.uint64(64) + (place // 16).astype(np.uint64)
    random = counter_hash(plan.seed, _FILLER, blocks)
    shift = ((_UNIQUE_DIGITS - 1 - np.minimum(place, _UNIQUE_DIGITS - 1)) * 4).astype(np.uint64)
    random_shift = ((place % 16) * 4).astype(np.uint64)
    nibbles = np.where(place < _UNIQUE_DIGITS, unique >> shift, random >> random_shift)
    text = _HEX[(nibbles & np.uint64(15)).astype(np.int64)]
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(text))


def _words(vocabulary: tuple[str, ...], hashes: UInt64s) -> pa.Array:
    """Return an evenly picked word for each hash."""
    picked = (hashes % np.uint64(len(vocabulary))).astype(np.int64)
    return pa.array(vocabulary).take(pa.array(picked))


def _properties(plan: TopicPlan, namespace: NamespacePlan, bases: _Bases) -> pa.Array:
    """Return the properties of the base topics: team, env and, for most, tier or owner."""
    seed, ids = plan.seed, bases.ids
    squad = (counter_hash(seed, _SQUAD, ids) % np.uint64(len(words.SQUADS))).astype(np.int64)
    teams = pa.array([f"{namespace.tenant}-{name}" for name in words.SQUADS])
    owners = pa.array([f"{name}@{namespace.tenant}.example" for name in words.SQUADS])
    environment = choices(seed, _ENVIRONMENT, ids, _ENVIRONMENT_WEIGHTS)
    third = choices(seed, _THIRD, ids, _THIRD_PROPERTY_WEIGHTS)
    tier = (counter_hash(seed, _TIER, ids) % np.uint64(len(words.TIERS))).astype(np.int64)
    values = pa.concat_arrays([teams, pa.array(words.ENVIRONMENTS), pa.array(words.TIERS), owners])
    tiers_at = len(words.SQUADS) + len(words.ENVIRONMENTS)
    third_value = np.where(third == 1, tiers_at + tier, tiers_at + len(words.TIERS) + squad)
    chosen = np.stack([squad, len(words.SQUADS) + environment, third_value], axis=1)
    keys = np.stack([np.zeros_like(third), np.ones_like(third), third + 1], axis=1)
    kept = np.stack([third >= 0, third >= 0, third > 0], axis=1)
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array(["team", "env", "tier", "owner"]).take(pa.array(keys[kept])),
        values.take(pa.array(chosen[kept])),
    )
