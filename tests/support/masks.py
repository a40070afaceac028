"""Matches of full names with a pattern, one by one and over columns: the same, or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from broker.patterns import worker
from broker.patterns.columns import paths_of
from broker.patterns.pattern import Backtracking, MatchAll
from broker.topic_lists.block import offsets_of
from broker.topic_lists.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.patterns.pattern import TopicsPattern
    from broker.topic_lists.block import Mask


def mask_of(pattern: TopicsPattern, names: Sequence[bytes]) -> Mask:
    """Match full topic names, with a backtracking engine as its worker process does."""
    paths = list(map(path_of, names))
    if isinstance(pattern, MatchAll):
        return b"\1" * len(paths)
    if isinstance(pattern, Backtracking):
        compiled = worker.compiled(pattern.translation)
        return worker.matched(compiled, offsets_of(map(len, paths)), b"".join(paths))
    one_by_one = pattern.matching(paths)
    assert pattern.matching(paths_of(pa.array(names, pa.binary()))) == one_by_one
    return one_by_one
