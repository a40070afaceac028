"""The properties of synthetic topics: what they say of a topic is a function of its id alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from loadgen.corpus import vocabulary as words
from loadgen.corpus.counter_hash import UInt64s, choices, counter_hash

if TYPE_CHECKING:
    from loadgen.corpus.topic_plan import TopicPlan

_ENVIRONMENT_WEIGHTS = np.array([0.60, 0.20, 0.15, 0.05])
# The third property: none, tier, owner.
_THIRD_PROPERTY_WEIGHTS = np.array([0.3, 0.4, 0.3])
_SQUAD, _ENVIRONMENT, _THIRD, _TIER = range(8, 12)
_LABEL = 14
_MOST_LABELS = 64
_LABELS = (*words.APPLICATIONS, *words.REGIONS, *words.SUBJECTS)


def topic_properties(plan: TopicPlan, tenant: str, ids: UInt64s) -> pa.Array:
    """Return the properties of topics, a map each, as the plan's shape wants them."""
    count = plan.shape.property_count
    if plan.shape.properties == "usual":
        return _usual(plan.seed, tenant, ids)
    return _labels(plan.seed, ids, count or 0)


def _labels(seed: int, ids: UInt64s, count: int) -> pa.Array:
    """Return a fixed number of properties: label-00, label-01 and so on, with a word each."""
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
    """Return team, env and, for most, tier or owner."""
    squad = (counter_hash(seed, _SQUAD, ids) % np.uint64(len(words.SQUADS))).astype(np.int64)
    teams = pa.array([f"{tenant}-{name}" for name in words.SQUADS])
    owners = pa.array([f"{name}@{tenant}.example" for name in words.SQUADS])
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
