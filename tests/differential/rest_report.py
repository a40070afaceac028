"""Plays fresh REST calls to a real Pulsar and to Floodgate, and says where they differ.

    python -m tests.differential.rest_report --real http://127.0.0.1:8080 --seed 1 --seed 2

Each exchange is played to the real one twice; where it differs from itself it is dropped and
counted. Without ``--ours`` a Floodgate broker in profile ``pulsar`` is started for the run. Exit
status 1 when a bound is broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.differential.rest_comparing import compare
from tests.differential.rest_deviations import deviation_of
from tests.differential.rest_generating import exchanges
from tests.differential.rest_playing import UnpreparedError, play
from tests.support.golden_targets import golden_broker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.differential.rest_calls import RestExchange
    from tests.differential.rest_comparing import RestComparison
    from tests.differential.rest_playing import RestAnswer

SIDE_BY_SIDE = 16
"""Exchanges that are played at the same time."""
LEAST_KINDS, LEAST_CLASS, LEAST_FIELDS, LEAST_PRODUCTIVE = 0.995, 0.95, 0.97, 0.6
MOST_DROPPED, MOST_LISTED = 0.05, 0.01


@dataclass(frozen=True)
class Played:
    """An exchange with its answers.

    Attributes:
        exchange: What was asked.
        real: What the real server answered.
        ours: What Floodgate answered.
        compared: Call by call; None where the real server differed from itself.
    """

    exchange: RestExchange
    real: Sequence[RestAnswer]
    ours: Sequence[RestAnswer]
    compared: Sequence[RestComparison] | None


@dataclass
class Figures:
    """What a run found."""

    asked: int = 0
    calls: int = 0
    dropped: int = 0
    productive: int = 0
    kinds: int = 0
    fields: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    deviating: Counter[str] = field(default_factory=Counter)
    class_calls: Counter[str] = field(default_factory=Counter)
    class_kinds: Counter[str] = field(default_factory=Counter)

    def count(self, played: Played) -> None:
        """Add one exchange."""
        if played.compared is None:
            self.dropped += len(played.exchange.calls)
            return
        answers = zip(played.exchange.calls, played.real, played.ours, strict=True)
        for (call, real, ours), compared in zip(answers, played.compared, strict=True):
            self.asked += 1
            self.productive += 200 <= real.status < 400
            deviation = deviation_of(call, real, ours) if compared.differences else None
            if deviation is not None:
                self.deviating[deviation.name] += 1
                continue
            self.calls += 1
            self.kinds += compared.kinds_agree
            self.fields += not compared.differences
            self.masked.update(mask for _, mask in compared.masked)
            for one in (call.kind, f"oddity: {call.oddity}"):
                self.class_calls[one] += 1
                self.class_kinds[one] += compared.kinds_agree

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        asked, calls = max(self.asked, 1), max(self.calls, 1)
        yield (
            f"{self.asked} calls, {self.dropped} more dropped; {self.productive / asked:.1%} "
            f"productive; {sum(self.deviating.values())} deviate as listed; of the others status "
            f"agrees in {self.kinds / calls:.2%}, every field in {self.fields / calls:.2%}; "
            f"of all status in {self.kinds / asked:.2%}, every field in {self.fields / asked:.2%}"
        )
        yield "deviating: " + ", ".join(f"{name} {n}" for name, n in self.deviating.most_common())
        yield "masked: " + ", ".join(f"{name} {n}" for name, n in self.masked.most_common())
        for one, n in sorted(self.class_calls.items(), key=lambda pair: self._share(pair[0])):
            if self._share(one) < 1 or n < LEAST_OF_A_CLASS:
                yield f"  {self._share(one):7.1%} of {n:4}  {one}"

    def _share(self, one: str) -> float:
        return self.class_kinds[one] / self.class_calls[one]

    def holds(self) -> bool:
        """Tell whether every bound is kept."""
        asked, calls = max(self.asked, 1), max(self.calls, 1)
        return (
            self.kinds / calls >= LEAST_KINDS
            and self.fields / calls >= LEAST_FIELDS
            and self.productive / asked >= LEAST_PRODUCTIVE
            and self.dropped / (asked + self.dropped) <= MOST_DROPPED
            and sum(self.deviating.values()) / asked <= MOST_LISTED
            and all(self._share(one) >= LEAST_CLASS for one in self.class_calls)
        )


LEAST_OF_A_CLASS = 30


class Players:
    """Plays exchanges to both servers.

    Args:
        real: ``host:port`` of the real server's web port.
        ours: Of Floodgate's.
    """

    def __init__(self, real: str, ours: str) -> None:
        self._real, self._ours = real, ours
        self._alone = threading.Lock()

    def played(self, exchange: RestExchange) -> Played:
        """Play one exchange to both, to the real one twice."""
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
        """Play several side by side; yield them in their order."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from pool.map(self.played, made)


def difference_lines(played: Played) -> Iterator[str]:
    """Yield what differs in one exchange, with the calls before it."""
    if played.compared is None:
        yield f"{played.exchange.name}: the real one differs from itself, or cannot be prepared"
        return
    found = [one for compared in played.compared for one in compared.differences]
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; 0 when every bound is kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--real", default=os.environ.get("PULSAR_WEB_URL"), help="http://host:port")
    parser.add_argument("--ours", help="of a Floodgate broker; without it one is started")
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--calls", type=int, default=3_000, help="of each seed")
    parser.add_argument("--differences", type=Path, help="file that receives every difference")
    options = parser.parse_args(arguments)
    if not options.real:
        parser.error("name a real Pulsar: --real or PULSAR_WEB_URL")
    with _ours(options.ours) as ours:
        players = Players(_address(options.real), ours)
        held = [_run(players, seed, options.calls, options.differences) for seed in options.seed]
    return 0 if all(held) else 1


def _run(players: Players, seed: int, calls: int, written: Path | None) -> bool:
    figures, lines = Figures(), []
    for played in players.all(exchanges(seed, calls)):
        figures.count(played)
        lines += difference_lines(played)
    sys.stdout.write("\n".join([f"seed {seed}:", *figures.lines(), ""]))
    sys.stdout.flush()
    if written is not None:
        with written.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    return figures.holds()


@contextmanager
def _ours(url: str | None) -> Iterator[str]:
    if url is not None:
        yield _address(url)
        return
    with tempfile.TemporaryDirectory() as folder, golden_broker(Path(folder)) as target:
        yield target.web


def _address(url: str) -> str:
    return url.removeprefix("http://").rstrip("/")


if __name__ == "__main__":
    sys.exit(main())
