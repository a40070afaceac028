"""Sequential measurements: time, and costs of broker and proxy."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import requests

from benchmarks.controlled_process import ControlledProcess
from server.tasks.freed_memory import KEPT_BYTES, LOOK_SECONDS, LOOKS
from tests.proof.growth.corpus import Corpus
from tests.proof.result import ProofError

BOUND_MILLIS = 20.0
TRIES = 3
AFTER_SECONDS = 0.05
"""Work after an answer, as the feed of changes, counts as part of the operation."""
SETTLED_SECONDS = LOOKS * LOOK_SECONDS + 3.0


@dataclass(frozen=True)
class Row:
    """An operation with one corpus, in one place.

    Attributes:
        what: The operation.
        place: Store, profile and way.
        seconds: Until the answer.
        grown_bytes: Largest growth of a server meanwhile, broker or proxy.
        millis: The longest turn of either, without the collector's passes.
        collector_millis: The longest pass of Python's collector in a turn.
        explained: Stack of the longest turn.
        error: Cause of failure; empty on success.
    """

    what: str
    place: str
    seconds: float
    grown_bytes: int
    millis: float
    collector_millis: float
    explained: str
    error: str = ""


@dataclass
class Stage:
    """A broker, a proxy before it, and their rows. Mutable: the rows.

    Attributes:
        corpus: The broker's topics.
        store: Metadata store.
        profile: Profile.
        broker: The broker's process.
        proxy: The proxy's process.
        urls: ``service_url`` and ``web_url`` by way: "direct" to the broker, or by the "proxy".
    """

    corpus: Corpus
    store: str
    profile: str
    broker: ControlledProcess
    proxy: ControlledProcess
    urls: dict[str, dict[str, str]]
    note: Callable[[str], None]
    rows: list[Row] = field(default_factory=list)
    _fresh: int = 0

    @property
    def tunnel(self) -> str:
        """The broker's address for the proxy."""
        return self.urls["direct"]["service_url"].removeprefix("pulsar://")

    def fresh(self) -> int:
        """Return an unused number."""
        self._fresh += 1
        return self._fresh

    def measure(self, what: str, way: str, work: Callable[[], object], tries: int = TRIES) -> bool:
        """Measure some work; repeat while a turn is above the bound, and keep the least.

        Returns:
            Whether it succeeded.
        """
        self.note(f"{self.corpus.title}, {self._place(way)}: {what}")
        found = [self._measured(what, way, work)]
        while len(found) < tries and found[-1].millis > BOUND_MILLIS and not found[-1].error:
            found.append(self._measured(what, way, work))
        self.rows.append(min(found, key=lambda row: (not row.error, row.millis)))
        return not self.rows[-1].error

    def resident_bytes(self) -> list[int]:
        """Return the resident memory of broker and proxy."""
        return [server.ask("take")["resident_bytes"] for server in (self.broker, self.proxy)]

    def held(self, what: str, way: str, before: list[int]) -> None:
        """Add a row of the memory still held after an operation, by broker or proxy.

        Memory is freed in steps, and the C library releases it after five seconds without use: the
        measurement waits for that, or for a small value.
        """
        ends = time.monotonic() + SETTLED_SECONDS
        while True:
            grown = [now - one for now, one in zip(self.resident_bytes(), before, strict=True)]
            if max(grown) <= KEPT_BYTES or time.monotonic() >= ends:
                break
            time.sleep(AFTER_SECONDS)
        self.rows.append(Row(what, self._place(way), 0.0, max(0, *grown), 0.0, 0.0, ""))

    def _measured(self, what: str, way: str, work: Callable[[], object]) -> Row:
        servers = (self.broker, self.proxy)
        before, error = [server.ask("take") for server in servers], ""
        began = time.perf_counter()
        try:
            work()
        except (ProofError, requests.RequestException, OSError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        seconds = time.perf_counter() - began
        time.sleep(AFTER_SECONDS)
        after = [server.ask("take") for server in servers]
        worst = max(after, key=lambda one: float(one["millis"]))
        grown = [
            two["peak_bytes"] - one["resident_bytes"]
            for one, two in zip(before, after, strict=True)
        ]
        return Row(
            what,
            self._place(way),
            seconds,
            max(0, *grown),
            worst["millis"],
            max(float(one["collector_millis"]) for one in after),
            worst["explained"],
            error,
        )

    def _place(self, way: str) -> str:
        return f"{self.store}, {self.profile}, {way}"
