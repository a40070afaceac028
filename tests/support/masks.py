"""Matches of full names with a pattern, one by one and over columns: the same, or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from broker.patterns.columns import paths_of
from broker.topic_lists.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.patterns.pattern import TopicsPattern
    from broker.topic_lists.block import Mask


def mask_of(pattern: TopicsPattern, names: Sequence[bytes]) -> Mask:
    """Match full topic names."""
    one_by_one = pattern.matching(list(map(path_of, names)))
    assert pattern.matching(paths_of(pa.array(names, pa.binary()))) == one_by_one
    return one_by_one
