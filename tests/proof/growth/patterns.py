"""Patterns of each engine that keep none, few, most and all names, by listing and by watch.

And patterns that never end: they are refused while other requests are served.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import proto.PulsarApi_pb2 as pb
from tests.proof.growth.asking import Asker
from tests.proof.growth.commands import check_names, listing, partitions_request
from tests.proof.growth.measuring import Stage
from tests.proof.growth.watches import Watches
from tests.proof.result import ProofError

_WORDS = "|".join(f"z{number * 2_654_435_761 % 2**32:08x}" for number in range(1, 1_000))
"""Words absent from all names, with distinct beginnings: 9,000 instructions of RE2."""
MOST_CHARACTERS = 12_000
"""Bytes of the longest pattern, its namespace included."""
PATTERNS = {
    "literal": (".*absent.*", ".*rare.*", ".*often.*", ".*app.*"),
    "beginning": ("zzz.*", "rare-.*", "often-.*", "[or].*"),
    "RE2": (
        ".*[0-9]absent.*",
        ".*ra[r]e-[0-9]+p?-a.*",
        ".*oft[e]n-[0-9]+p?-a.*",
        ".*-[0-9]+p?-a.*",
    ),
    "RE2, large program": (
        f".*(?:{_WORDS})-.*",
        f"(?:{_WORDS}|rare)-.*",
        f"(?:{_WORDS}|often)-.*",
        f".*(?:{_WORDS}|app).*",
    ),
    "look-ahead": ("(?!.*app).*", "(?=rare).*", "(?!rare).*", "(?=.*app).*"),
    "back-reference": (r".*(z)\1", r"(r)a\1e-.*", r"often-.*(x)\1", r"[or].*(x)\1"),
}
"""By engine, the pattern's part after the namespace: for none, few, most and all names."""
SHARES = ("none", "few", "most", "all")
ENDLESS = r"(?!zz).*(?:(?:x|x)*)*q"
"""Tries each partition of the x at a name's end: more than there are particles."""
REFUSED_SECONDS = 60.0
_REMEDY = "floodgatePatternTimeoutMs"
_MOST_REFUSAL_CHARACTERS = 400
_RARE = 100
_OTHERS_SECONDS = 1.0
_ASKED_EVERY_SECONDS = 0.005


class Patterns:
    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._watches = Watches(stage, way)
        self._namespace = stage.corpus.namespace(0)

    def measure_all(self) -> None:
        """Measure each pattern by a listing and by a watch; then the endless pattern."""
        for engine, patterns in PATTERNS.items():
            for share, pattern in zip(SHARES, patterns, strict=True):
                self._stage.measure(
                    f"{engine}, {share}: listing", self._way, partial(self._list, pattern, share)
                )
                self._stage.measure(
                    f"{engine}, {share}: watch", self._way, partial(self._watch, pattern, share), 1
                )
        for what, work in (("listing", self._endless_list), ("watch", self._endless_watch)):
            refused = partial(self._refused, work)
            self._stage.measure(f"endless, refused: {what}", self._way, refused, 1)

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

    # -- without end ------------------------------------------------------------------------------

    def _endless_list(self) -> None:
        self._list(ENDLESS, "none")

    def _endless_watch(self) -> None:
        self._watch(ENDLESS, "none")

    def _refused(self, ask: Callable[[], None]) -> None:
        """Send a request that is refused with a sentence.

        Raises:
            ProofError: The request is not refused, or other requests were not served meanwhile.
        """
        began = time.perf_counter()
        with _served_others(self._stage, self._way):
            try:
                ask()
            except ProofError as refusal:
                text = str(refusal)
            else:
                raise ProofError("a pattern without end ended")
        if _REMEDY not in text or "\n" in text or len(text) > _MOST_REFUSAL_CHARACTERS:
            raise ProofError(f"not refused in one sentence with its remedy: {text}")
        if time.perf_counter() - began > REFUSED_SECONDS:
            raise ProofError(f"refused after more than {REFUSED_SECONDS:g} s: {text}")


@contextmanager
def _served_others(stage: Stage, way: str) -> Iterator[None]:
    """Request a topic's partitions repeatedly during a block.

    Raises:
        ProofError: An answer took more than a second, or none arrived.
    """
    ended, waits, failures = threading.Event(), list[float](), list[Exception]()

    def ask() -> None:
        try:
            with Asker(stage.urls[way]["service_url"]) as asker:
                while not ended.wait(_ASKED_EVERY_SECONDS):
                    began = time.perf_counter()
                    asker.ask(partitions_request(asker, stage.corpus.topic))
                    waits.append(time.perf_counter() - began)
        except (ProofError, OSError) as failure:
            failures.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures or not waits or max(waits) > _OTHERS_SECONDS:
        longest = max(waits, default=0.0)
        raise ProofError(
            f"{len(waits)} others were served, after {longest:.1f} s at most, {failures}"
        )
