"""Patterns of each engine that keep none, few, most and all names, by listing and by watch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from tests.proof.growth.asking import Asker
from tests.proof.growth.commands import check_names, listing
from tests.proof.growth.watches import Watches

if TYPE_CHECKING:
    from tests.proof.growth.measuring import Stage

PATTERNS = {
    "literal": (".*absent.*", ".*rare.*", ".*often.*", ".*app.*"),
    "beginning": ("zzz.*", "rare-.*", "often-.*", "[or].*"),
    "RE2": (
        ".*[0-9]absent.*",
        ".*ra[r]e-[0-9]+p?-a.*",
        ".*oft[e]n-[0-9]+p?-a.*",
        ".*-[0-9]+p?-a.*",
    ),
    "look-ahead": ("(?!.*app).*", "(?=rare).*", "(?!rare).*", "(?=.*app).*"),
}
"""By engine what is behind the namespace: for none, few, most and all names."""
SHARES = ("none", "few", "most", "all")
_RARE = 100


class Patterns:
    """The patterns, by one way."""

    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._watches = Watches(stage, way)
        self._namespace = stage.corpus.namespace(0)

    def measure_all(self) -> None:
        """Measure each pattern by a listing, and by a watch."""
        for engine, patterns in PATTERNS.items():
            for share, pattern in zip(SHARES, patterns, strict=True):
                self._stage.measure(
                    f"{engine}, {share}: listing", self._way, partial(self._list, pattern, share)
                )
                self._stage.measure(
                    f"{engine}, {share}: watch", self._way, partial(self._watch, pattern, share), 1
                )

    def _names(self, share: str) -> int:
        corpus = self._stage.corpus
        groups = -(-corpus.each // 10)
        rare = min(corpus.each, -(-groups // _RARE) * 10)
        return {"none": 0, "few": rare, "most": corpus.each - rare, "all": corpus.each}[share]

    def _list(self, pattern: str, share: str) -> None:
        with Asker(self._stage.urls[self._way]["service_url"]) as asker:
            mode = pb.CommandGetTopicsOfNamespace.PERSISTENT
            whole = f"persistent://{self._namespace}/{pattern}"
            answer = listing(asker, self._namespace, mode=mode, topics_pattern=whole)
            check_names(answer.size_bytes, self._names(share))

    def _watch(self, pattern: str, share: str) -> None:
        with self._watches.asker() as asker:
            check_names(self._watches.watch(asker, pattern), self._names(share))
