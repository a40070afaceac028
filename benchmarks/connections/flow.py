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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme

from benchmarks.listings.corpus import listing_answer
from benchmarks.listings.rate import listing_rate
from benchmarks.processes import Yardstick, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VALID_CORE_SHARE = 0.9
REPEATS_PER_ROUND = 2
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

    server: Yardstick
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
        rounds = _rounds(contestants, options)
    return conclude(rounds, options.rounds)


@contextmanager
def _contestants(folder: Path) -> Iterator[dict[Pair, dict[str, Contestant]]]:
    """Start the servers of all pairs; while one is measured, the others are idle."""
    authority, certificate = _certificate(folder)
    with ExitStack() as stack:
        found: dict[Pair, dict[str, Contestant]] = {}
        for pair in PAIRS:
            answer = listing_answer(pair.names)
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


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Write the certificate of an authority, and one for 127.0.0.1 with its key."""
    authority, certificate = folder / "authority.pem", folder / "server.pem"
    made = trustme.CA()
    made.cert_pem.write_to_path(authority)
    made.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    return authority, certificate


def _rounds(
    contestants: Mapping[Pair, Mapping[str, Contestant]], options: BenchOptions
) -> list[Round]:
    rounds: list[Round] = []
    most = options.rounds * (1 + REPEATS_PER_ROUND)
    while sum(map(valid, rounds)) < options.rounds and len(rounds) < most:
        found: Round = {}
        for pair, sides in contestants.items():
            options.note(f"round {len(rounds) + 1}: {pair.label}")
            found[pair.label] = {
                side: _measured(contestant, options.seconds) for side, contestant in sides.items()
            }
        rounds.append(found)
    return rounds


def _measured(contestant: Contestant, seconds: float) -> dict[str, float]:
    server = contestant.server
    tls = ["--authority", str(contestant.authority)] if contestant.authority else []
    address = server.host, server.port
    return listing_rate(address, server.pid, contestant.answer_bytes, seconds, *tls)


def valid(found: Round) -> bool:
    """Return True if both servers of every plain pair had enough of a core in a round."""
    return all(
        found[pair.label][side]["core_share"] >= VALID_CORE_SHARE
        for pair in JUDGED
        for side in MODULES
    )


def conclude(rounds: Sequence[Round], wanted: int) -> BenchResult:
    """Return the figures of the valid rounds or, if none is valid, of all rounds with a remark."""
    good = [found for found in rounds if valid(found)]
    figures = [figure for pair in PAIRS for figure in _figures(pair, good or rounds)]
    remarks = ["TLS: ours above the plain transport, the bare server's is uvloop's own."]
    if len(good) < wanted:
        remarks.insert(0, _shortfall(len(good), wanted, len(rounds)))
    raw: list[dict[str, Any]] = [{"valid": valid(found), **found} for found in rounds]
    return BenchResult(figures, remarks, raw)


def _shortfall(good: int, wanted: int, measured: int) -> str:
    of_all = "" if good else " The figures are of all rounds and not valid."
    return (
        f"Only {good} of {measured} rounds were valid ({wanted} wanted): a server of a plain pair "
        f"had under {VALID_CORE_SHARE:g} of a core.{of_all}"
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
