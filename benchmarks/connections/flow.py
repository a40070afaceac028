"""Large answers over the servers' connection class, compared with a bare server.

The bare server sends the same bytes. There are four pairs: answers of 1 MB and 4 MB, plain and with
TLS. Our side is benchmarks.connections.flow_server, to compare only the connection: frames, read
gate, outbound queue, TLS above the transport. The bare server parses and counts nothing, and uses
uvloop's TLS. Both sides of a pair are measured one after the other, and a ratio compares them in
the same round. A round is invalid if a server of a plain pair had less than VALID_CORE_SHARE of a
core.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.certificates import write_certificates
from benchmarks.listings.corpus import answer_of, listing_names
from benchmarks.listings.rate import listing_rate
from benchmarks.processes import MeasuredServer, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from benchmarks.valid_rounds import VALID_CORE_SHARE, conclude_valid, valid_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GOAL = 0.65
"""Goal relative to the bare server's answers per second, without TLS."""
BARE, OURS = "bare", "connection"
MODULES = {BARE: "benchmarks.listings.bare_server", OURS: "benchmarks.connections.flow_server"}


@dataclass(frozen=True)
class Pair:
    """Two servers that send the same answer: our connection and the bare server.

    Attributes:
        names: Number of 100-byte names in the answer.
        tls: Whether both servers encrypt.
    """

    names: int
    tls: bool

    @property
    def label(self) -> str:
        """The name of the pair in a table."""
        return f"{self.names // 10_000} MB{', TLS' if self.tls else ''}"


PAIRS = tuple(Pair(names, tls) for names in (10_000, 40_000) for tls in (False, True))
JUDGED = tuple(pair for pair in PAIRS if not pair.tls)
Round = dict[str, dict[str, dict[str, float]]]
"""By pair and side."""


@dataclass(frozen=True)
class Contestant:
    """A server to be measured, and the parameters for its client."""

    server: MeasuredServer
    answer_bytes: int
    authority: Path | None


def run(options: BenchOptions) -> BenchResult:
    """Measure all pairs of servers in each round.

    Raises:
        BenchError: A server did not start, or a round could not be measured.
    """
    with (
        tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder,
        _contestants(Path(folder)) as contestants,
    ):
        rounds = valid_rounds(options.rounds, partial(_round, contestants, options), valid)
    return conclude(rounds, options.rounds)


@contextmanager
def _contestants(folder: Path) -> Iterator[dict[Pair, dict[str, Contestant]]]:
    """Start the servers of all pairs; while one is measured, the others are idle."""
    authority, certificate = write_certificates(folder)
    with ExitStack() as stack:
        found: dict[Pair, dict[str, Contestant]] = {}
        for pair in PAIRS:
            answer = answer_of(listing_names(pair.names))
            answer_file = folder / f"answer-{pair.names}"
            answer_file.write_bytes(answer)
            arguments = [str(answer_file), *([str(certificate)] if pair.tls else [])]
            found[pair] = {
                side: Contestant(
                    stack.enter_context(yardstick(module, *arguments)),
                    len(answer),
                    authority if pair.tls else None,
                )
                for side, module in MODULES.items()
            }
        yield found


def _round(
    contestants: Mapping[Pair, Mapping[str, Contestant]], options: BenchOptions, number: int
) -> Round:
    found: Round = {}
    for pair, sides in contestants.items():
        options.note(f"round {number}: {pair.label}")
        found[pair.label] = {
            side: _measured(contestant, options.seconds) for side, contestant in sides.items()
        }
    return found


def _measured(contestant: Contestant, seconds: float) -> dict[str, float]:
    tls = ["--authority", str(contestant.authority)] if contestant.authority else []
    return listing_rate(contestant.server, contestant.answer_bytes, seconds, *tls)


def valid(found: Round) -> bool:
    """Return True if both servers of every plain pair had enough of a core in a round."""
    return all(
        found[pair.label][side]["core_share"] >= VALID_CORE_SHARE
        for pair in JUDGED
        for side in MODULES
    )


def conclude(rounds: Sequence[Round], wanted: int) -> BenchResult:
    """Return the figures of the valid rounds or, if none is valid, of all rounds with a remark."""
    return conclude_valid(
        rounds,
        wanted,
        valid,
        lambda counted: [figure for pair in PAIRS for figure in _figures(pair, counted)],
        "a server of a plain pair",
        "TLS: ours above the plain transport, the bare server's is uvloop's own.",
    )


def _figures(pair: Pair, rounds: Sequence[Round]) -> list[Figure]:
    both = [found[pair.label] for found in rounds]
    goal = None if pair.tls else GOAL
    rate = [one[OURS]["per_second"] / one[BARE]["per_second"] for one in both]
    cpu = [one[BARE]["cpu_millis"] / max(1e-9, one[OURS]["cpu_millis"]) for one in both]
    return [
        *(
            Figure(f"{pair.label}: {side}", "answers/s", [one[side]["per_second"] for one in both])
            for side in MODULES
        ),
        Figure(f"{pair.label}: connection / bare", "ratio", rate, goal),
        Figure(f"{pair.label}: CPU an answer, bare / connection", "ratio", cpu),
    ]
