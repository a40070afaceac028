"""Plays REST calls to a real Pulsar twice and to Floodgate, and counts the results."""

import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.differential.figures import Figures
from tests.differential.rest.calls import RestCall, RestExchange
from tests.differential.rest.comparing import FIELDS, RestComparison, compare
from tests.differential.rest.deviations import deviation_of
from tests.differential.rest.endpoints import ENDPOINTS
from tests.differential.rest.oddities import ODDITIES
from tests.differential.rest.playing import UnpreparedError, play
from tests.differential.sides import real_side
from tests.support.golden.rest import RestAnswer
from tests.support.golden.targets import golden_broker

SIDE_BY_SIDE = 16
"""Concurrent exchanges."""
CLASSES = frozenset({one.kind for one in ENDPOINTS} | {f"oddity: {one.name}" for one in ODDITIES})
"""Classes of calls, each with a minimum frequency."""


@dataclass(frozen=True)
class Played:
    """Exchange with its answers.

    Attributes:
        exchange: The calls.
        real: The real server's answers.
        ours: Floodgate's answers.
        compared: By call; None if the real server differed from itself.
    """

    exchange: RestExchange
    real: Sequence[RestAnswer]
    ours: Sequence[RestAnswer]
    compared: Sequence[RestComparison] | None

    @property
    def calls(self) -> Iterable[tuple[RestCall, RestAnswer, RestAnswer, RestComparison]]:
        """Yield each call with both answers and their comparison; none for a dropped exchange."""
        if self.compared is None:
            return ()
        return zip(self.exchange.calls, self.real, self.ours, self.compared, strict=True)


def count(figures: Figures, played: Played) -> None:
    if played.compared is None:
        figures.dropped += len(played.exchange.calls)
        return
    for call, real, ours, compared in played.calls:
        figures.compared += 1
        figures.answered += 200 <= real.status < 400
        figures.same_codes += compared.kinds_agree
        figures.same_fields += not compared.differences
        figures.fields += len(FIELDS)
        figures.masked.update(mask for _, mask in compared.masked)
        known = deviation_of(call, real, ours) if compared.differences else None
        if known is not None:
            figures.listed[known.name] += 1
            figures.listed_codes += not compared.kinds_agree
        classes = (call.kind, f"oddity: {call.oddity}")
        alike = compared.kinds_agree
        figures.count_request(classes, alike=alike, as_listed=known is not None)


class Players:
    """Plays exchanges to both servers.

    Args:
        real: ``host:port`` of the real server's web port.
        ours: ``host:port`` of Floodgate's.
    """

    def __init__(self, real: str, ours: str) -> None:
        self._real, self._ours = real, ours
        self._alone = threading.Lock()

    def played(self, exchange: RestExchange) -> Played:
        """Play an exchange to Floodgate, and twice to the real server."""
        if not exchange.changes_all:
            return self._played(exchange)
        with self._alone:
            return self._played(exchange)

    def _played(self, exchange: RestExchange) -> Played:
        ours = play(self._ours, exchange)
        try:
            first = play(self._real, exchange)
            again = play(self._real, exchange)
        except UnpreparedError:
            return Played(exchange, (), ours, None)
        itself = compare(exchange, first, again)
        same = not any(one.differences for one in itself)
        return Played(exchange, first, ours, compare(exchange, first, ours) if same else None)

    def all(self, made: Iterable[RestExchange]) -> Iterator[Played]:
        """Play exchanges concurrently; yield results in order."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from pool.map(self.played, made)


def difference_lines(played: Played) -> Iterator[str]:
    """Yield the unlisted differences of an exchange, after the calls before."""
    found = [
        one
        for call, real, ours, compared in played.calls
        if deviation_of(call, real, ours) is None
        for one in compared.differences
    ]
    if not found:
        return
    yield f"{played.exchange.name}:"
    for step, call in enumerate(played.exchange.calls[: found[-1].step + 1]):
        body = "" if call.body is None else f" {call.body[:100]}"
        headers = dict(call.headers) if call.oddity != "plain" else ""
        yield f"  {step} [{call.oddity}] {call.method} {call.path}{body} {headers}"
        for one in found:
            if one.step == step:
                yield f"      {one.field}: real {one.real[:300]!r}"
                yield f"            ours {one.ours[:300]!r}"


@contextmanager
def open_players() -> Iterator[Players | None]:
    """Start Floodgate's broker in profile pulsar; None without a real server."""
    real = real_side("", through_proxy=False)
    if real is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, golden_broker(Path(folder)) as target:
        yield Players(real.web, target.web)
