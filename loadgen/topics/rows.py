"""Generation of topics as table rows, which depend only on the plan, the seed and the id.

The ids of a namespace are distributed to base topics: some have no partitions, the others have 3 to
64, with one listed name for each partition. A namespace has the same rows in any process and in any
order of generation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadgen.topics.distributions import (
    APPLICATIONS,
    ENVIRONMENTS,
    EVENTS,
    LONGEST_NAME_BYTES,
    REGIONS,
    SQUADS,
    SUBJECTS,
    TIERS,
    UInt64s,
    choices,
    counter_hash,
    fractions,
    length_spread,
    partition_counts,
    permuted32,
)
from loadgen.topics.plan import NONE, UNIQUE_DIGITS, USUAL
from proto.parquet_versions import TOPICS_VERSION, version_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from loadgen.topics.plan import NamespacePlan, TopicPlan

TOPIC_SCHEMA = pa.schema(
    {name: pa.string() for name in ("tenant", "namespace", "topic")}
    | {"partitions": pa.int32(), "properties": pa.map_(pa.string(), pa.string())},
    version_metadata(TOPICS_VERSION),
)
# A random stream for each decision, so that a new decision changes no old decision.
# Numbers 1 and 12 are those of loadgen.topics.plan.
_PARTITIONS, _LENGTH, _FILLER, _SUBJECT, _EVENT, _PERMUTATION = range(2, 8)
_SQUAD, _ENVIRONMENT, _THIRD, _TIER = range(8, 12)
_DOMAIN, _LABEL = 13, 14
_PIECE_ROWS = 200_000
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_ENVIRONMENT_WEIGHTS = np.array([0.60, 0.20, 0.15, 0.05])
# The third property: none, tier, owner.
_THIRD_PROPERTY_WEIGHTS = np.array([0.3, 0.4, 0.3])
_MOST_LABELS = 64
_LABELS = (*APPLICATIONS, *REGIONS, *SUBJECTS)


def namespace_rows(plan: TopicPlan, namespace: NamespacePlan) -> pa.Table:
    """Generate all topics of a namespace as rows, sorted by name.

    A row takes about 400 bytes. So the rows of a large namespace are generated in pieces, and only
    the names are sorted.
    """
    partitions = _partitions(plan, namespace)
    ids = np.arange(namespace.first_id, namespace.first_id + len(partitions), dtype=np.uint64)
    rows_per_base = np.maximum(partitions, 1)
    base_of_row = np.repeat(np.arange(len(ids)), rows_per_base)
    # The index of each row among the suffixes: 0 when plain, else partition + 1.
    within = np.arange(len(base_of_row)) - (np.cumsum(rows_per_base) - rows_per_base)[base_of_row]
    suffix_of_row = np.where(partitions[base_of_row] > 0, within + 1, 0)
    suffixes = _suffixes(int(partitions.max(initial=0)))
    suffix_bytes = float(pc.binary_length(suffixes).to_numpy()[suffix_of_row].mean())

    def names_of(bases: slice, rows: slice) -> pa.Array:
        prefixes = _base_names(plan, namespace, ids[bases], suffix_bytes)
        own = pa.array(base_of_row[rows] - bases.start)
        return pc.binary_join_element_wise(
            prefixes.take(own), suffixes.take(pa.array(suffix_of_row[rows])), ""
        )

    names = pa.concat_arrays(
        names_of(bases, slice(*np.searchsorted(base_of_row, [bases.start, bases.stop])))
        for bases in _pieces(len(ids))
    )
    order = pc.array_sort_indices(names)  # ASCII: the order of bytes is Java's order too
    sorted_bases = base_of_row[order.to_numpy()]

    def sorted_rows(rows: slice) -> pa.RecordBatch:
        bases = sorted_bases[rows]
        columns = [
            pa.repeat(pa.scalar(namespace.tenant), len(bases)),
            pa.repeat(pa.scalar(namespace.name), len(bases)),
            names.take(order[rows]),
            pa.array(partitions[bases].astype(np.int32)),
            _properties(plan, namespace.tenant, ids[bases]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=TOPIC_SCHEMA)

    return pa.Table.from_batches(map(sorted_rows, _pieces(namespace.topics)))


def _pieces(count: int) -> Iterator[slice]:
    for begin in range(0, count, _PIECE_ROWS):
        yield slice(begin, min(begin + _PIECE_ROWS, count))


@lru_cache(maxsize=8)
def _suffixes(most_partitions: int) -> pa.Array:
    """Return the possible ends of a topic name: nothing, or ``-partition-N`` for each partition."""
    return pa.array(["", *(f"-partition-{index}" for index in range(most_partitions))])


def _partitions(plan: TopicPlan, namespace: NamespacePlan) -> npt.NDArray[np.int64]:
    """Return the partition count of each topic; 0 for topics without partitions.

    All topics together have as many names as planned.
    """
    in_partitions = namespace.topics - round(namespace.topics * plan.shape.plain_share)
    counts = partition_counts(
        plan.shape.partitions, plan.seed, _PARTITIONS, namespace.first_id, in_partitions
    )
    return np.append(counts, np.zeros(namespace.topics - int(counts.sum()), dtype=np.int64))


def _base_names(
    plan: TopicPlan, namespace: NamespacePlan, ids: UInt64s, suffix_bytes: float
) -> pa.Array:
    """Generate topics' full names without partition, with the planned mean length.

    A name is ``persistent://tenant/namespace/subject.event-`` and a key of hexadecimal digits, of
    which the first eight are unique in the namespace.
    """
    seed, shape = plan.seed, plan.shape
    prefix: Any = f"persistent://{namespace.name}/"
    if shape.non_persistent_share:
        chosen = fractions(seed, _DOMAIN, ids) < shape.non_persistent_share
        prefix = pa.array([prefix, f"non-{prefix}"]).take(pa.array(chosen.astype(np.int64)))
    subjects = _words(SUBJECTS, counter_hash(seed, _SUBJECT, ids))
    events = _words(EVENTS, counter_hash(seed, _EVENT, ids))
    stem = (subjects, ".", events, "-") if not shape.short else (pa.array([""] * len(ids)),)
    stems = pc.binary_join_element_wise(prefix, *stem, "")
    wanted = shape.mean_name_bytes - suffix_bytes
    spread = length_spread(shape.name_lengths, seed, _LENGTH, ids, shape.mean_name_bytes)
    bytes_each = np.minimum(np.rint(wanted + spread), LONGEST_NAME_BYTES + 12).astype(np.int64)
    digits = bytes_each - pc.binary_length(stems).to_numpy()
    keys = _hex_keys(plan, namespace, ids, np.maximum(digits, UNIQUE_DIGITS))
    return pc.binary_join_element_wise(stems, keys, "")


def _hex_keys(
    plan: TopicPlan, namespace: NamespacePlan, ids: UInt64s, digits: npt.NDArray[np.int64]
) -> pa.Array:
    """Generate the end of each topic name: eight unique hexadecimal digits, then random ones."""
    ends = np.cumsum(digits)
    place = np.arange(ends[-1]) - np.repeat(ends - digits, digits)
    first = np.array([namespace.first_id], dtype=np.uint64)
    key = int(counter_hash(plan.seed, _PERMUTATION, first)[0])
    unique = np.repeat(permuted32(key, ids - np.uint64(namespace.first_id)), digits)
    # A hash gives sixteen digits; 64 hashes are more than the longest name needs.
    blocks = np.repeat(ids, digits) * np.uint64(64) + (place // 16).astype(np.uint64)
    random = counter_hash(plan.seed, _FILLER, blocks)
    shift = ((UNIQUE_DIGITS - 1 - np.minimum(place, UNIQUE_DIGITS - 1)) * 4).astype(np.uint64)
    random_shift = ((place % 16) * 4).astype(np.uint64)
    nibbles = np.where(place < UNIQUE_DIGITS, unique >> shift, random >> random_shift)
    text = _HEX[(nibbles & np.uint64(15)).astype(np.int64)]
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(text))


def _words(vocabulary: tuple[str, ...], hashes: UInt64s) -> pa.Array:
    """Choose a word for each hash, all words with the same probability."""
    picked = (hashes % np.uint64(len(vocabulary))).astype(np.int64)
    return pa.array(vocabulary).take(pa.array(picked))


def _properties(plan: TopicPlan, tenant: str, ids: UInt64s) -> pa.Array:
    """Generate the properties of topics as the shape of the plan states."""
    if plan.shape.properties == USUAL:
        return _usual(plan.seed, tenant, ids)
    count = 0 if plan.shape.properties == NONE else int(plan.shape.properties)
    return _labels(plan.seed, ids, count)


def _labels(seed: int, ids: UInt64s, count: int) -> pa.Array:
    """Generate ``count`` properties for each topic: label-00, label-01 and so on."""
    places = np.repeat(ids, count) * np.uint64(_MOST_LABELS) + np.tile(
        np.arange(count, dtype=np.uint64), len(ids)
    )
    picked = (counter_hash(seed, _LABEL, places) % np.uint64(len(_LABELS))).astype(np.int64)
    keys = pa.array([f"label-{index:02}" for index in range(count)], pa.string())
    return pa.MapArray.from_arrays(
        pa.array((np.arange(len(ids) + 1) * count).astype(np.int32)),
        keys.take(pa.array(np.tile(np.arange(count), len(ids)))),
        pa.array(_LABELS).take(pa.array(picked)),
    )


def _usual(seed: int, tenant: str, ids: UInt64s) -> pa.Array:
    """Generate the usual properties: team and env, and for most topics tier or owner."""
    squad = (counter_hash(seed, _SQUAD, ids) % np.uint64(len(SQUADS))).astype(np.int64)
    teams = pa.array([f"{tenant}-{name}" for name in SQUADS])
    owners = pa.array([f"{name}@{tenant}.example" for name in SQUADS])
    environment = choices(seed, _ENVIRONMENT, ids, _ENVIRONMENT_WEIGHTS)
    third = choices(seed, _THIRD, ids, _THIRD_PROPERTY_WEIGHTS)
    tier = (counter_hash(seed, _TIER, ids) % np.uint64(len(TIERS))).astype(np.int64)
    values = pa.concat_arrays([teams, pa.array(ENVIRONMENTS), pa.array(TIERS), owners])
    tiers_at = len(SQUADS) + len(ENVIRONMENTS)
    third_value = np.where(third == 1, tiers_at + tier, tiers_at + len(TIERS) + squad)
    chosen = np.stack([squad, len(SQUADS) + environment, third_value], axis=1)
    keys = np.stack([np.zeros_like(third), np.ones_like(third), third + 1], axis=1)
    kept = np.stack([third >= 0, third >= 0, third > 0], axis=1)
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array(["team", "env", "tier", "owner"]).take(pa.array(keys[kept])),
        values.take(pa.array(chosen[kept])),
    )
