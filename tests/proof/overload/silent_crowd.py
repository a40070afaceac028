"""Profile ``floodgate``: 200 silent peers with a namespace each, and the wait of healthy clients.

The limits hold two of the lists. Ten clients list once a second each; a listing counts from its due
time, even if sent late because its predecessor was. No peer is known to be silent within the first
grace, so listings due within it may wait for its end; later listings may not.

An eleventh client connects anew for each listing and is only measured: before its request it is
indistinguishable from a silent peer.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.places.server_process import ServerProcess
from tests.proof.overload.mid_topics import (
    MID,
    check_recorded_sizes,
    mid_expectation,
    write_mid_topics,
)
from tests.proof.overload.recorded_limits import ROLES, cluster, limits, server_of
from tests.proof.peers.healthy import Listing, healthy_clients, p99_seconds
from tests.proof.peers.healthy_clients import ANEW, DUE
from tests.proof.peers.silent_crowd_peers import silent_crowd
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs, server_address

SILENT = 200
PIPELINED = 64
HEALTHY = 10
PERIOD_MS = 1_000
ALONE_LISTINGS = 3 * HEALTHY
"""The clients' listing before the silent peers' requests."""
SECONDS = 60
QUICK_SECONDS = 15
LAST_ANSWER_SECONDS = 35.0
"""Longest wait for the last listing's answer, beyond a client's timeout."""
GRACE_SECONDS = 3.0
LONGEST_SECONDS = GRACE_SECONDS + 0.5
LATER_P99_SECONDS = 1.0
TABLE = (
    "role    silent peers   due within first grace: longest s   "
    "due later: p99 s   longest s   not right   closed   newcomers: longest s   not right"
)


@dataclass(frozen=True)
class Row:
    """The observations of the clients.

    Attributes:
        listings: Due and finished listings.
        wanted: Due listings.
        not_right: Outcomes other than the right answer.
        early_longest_s: The longest wait of a listing due within the first grace.
        later_p99_s: The 99th percentile of later listings.
        later_longest_s: The longest of later listings.
        closed: Silent connections closed by the server.
        newcomers_longest_s: The longest wait of the client that connects anew.
        newcomers_not_right: Wrong outcomes of the client that connects anew.
    """

    listings: int
    wanted: int
    not_right: list[str]
    early_longest_s: float
    later_p99_s: float
    later_longest_s: float
    closed: int
    newcomers_longest_s: float
    newcomers_not_right: list[str]

    def holds(self) -> bool:
        """True if no wait exceeded the bound by the grace."""
        return (
            self.listings == self.wanted
            and not self.not_right
            and self.early_longest_s <= LONGEST_SECONDS
            and self.later_p99_s <= LATER_P99_SECONDS
            and self.later_longest_s <= LONGEST_SECONDS
        )

    def sentence(self) -> str:
        return (
            f"{self.listings} of {self.wanted} listings, {len(self.not_right)} not right; due "
            f"within the first grace at most {self.early_longest_s:.2f} s, later p99 "
            f"{self.later_p99_s:.2f} s and at most {self.later_longest_s:.2f} s; "
            f"{self.closed} closed; newcomers at most {self.newcomers_longest_s:.2f} s, "
            f"{len(self.newcomers_not_right)} not right"
            + "".join(f"; {outcome}" for outcome in self.not_right[:1])
        )


def prove(options: ProofOptions) -> ProofResult:
    """Run rows in sequence, each against new servers."""
    check_recorded_sizes()
    result = ProofResult()
    rows: list[dict[str, Any]] = []
    result.figures["rows"] = rows
    namespaces = [f"public/silent-{number}" for number in range(SILENT)]
    topics = options.out / "topics.parquet"
    write_mid_topics(topics, [MID, *namespaces])
    keys = {"floodgateProfile": "floodgate", **limits()}
    lines = [TABLE]
    for role, comes_again in [(role, again) for again in (False, True) for role in ROLES]:
        title = f"{role}, silent peers {_habit(comes_again=comes_again)}"
        options.note(title)
        logs = options.out / f"{role}-{'again' if comes_again else 'once'}"
        with cluster(logs, keys, [topics]) as servers:
            seconds = QUICK_SECONDS if options.quick else SECONDS
            row = run_row(server_of(role, servers), namespaces, seconds, comes_again=comes_again)
        rows.append({"role": role, "comes_again": comes_again, **asdict(row)})
        lines.append(_line(role, row, comes_again=comes_again))
        result.check(title, row.holds(), f"{title}: {row.sentence()}")
        check_logs(logs, result, f"{title}: ")
    (options.out / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return result


def run_row(
    server: ServerProcess, namespaces: Sequence[str], seconds: int, *, comes_again: bool
) -> Row:
    """Run a row against a running server."""
    address, wanted = server_address(server), HEALTHY * seconds * 1_000 // PERIOD_MS
    with (
        healthy_clients(address, mid_expectation(MID), HEALTHY, PERIOD_MS, DUE) as healthy,
        healthy_clients(address, mid_expectation(MID), 1, PERIOD_MS, ANEW) as newcomers,
        silent_crowd(address, namespaces, PIPELINED, comes_again=comes_again) as crowd,
    ):
        healthy.listings(ALONE_LISTINGS, 0.0, LAST_ANSWER_SECONDS)
        started = time.monotonic()
        crowd.ask()
        time.sleep(seconds)
        # A few more fall due until the last has its answer.
        healthy.listings(wanted + HEALTHY, started, LAST_ANSWER_SECONDS)
        closed = len(crowd.closings)
    met = [one for one in healthy.since(started) if one.started < started + seconds]
    return _row(met, newcomers.since(started), started, wanted, closed)


def _row(
    met: Sequence[Listing], newcomers: Sequence[Listing], started: float, wanted: int, closed: int
) -> Row:
    early = [one for one in met if one.started < started + GRACE_SECONDS]
    later = [one for one in met if one.started >= started + GRACE_SECONDS]
    return Row(
        listings=len(met),
        wanted=wanted,
        not_right=[one.outcome for one in met if not one.right],
        early_longest_s=max((one.seconds for one in early), default=0.0),
        later_p99_s=p99_seconds(later),
        later_longest_s=max((one.seconds for one in later), default=0.0),
        closed=closed,
        newcomers_longest_s=max((one.seconds for one in newcomers), default=0.0),
        newcomers_not_right=[one.outcome for one in newcomers if not one.right],
    )


def _habit(*, comes_again: bool) -> str:
    return "come again" if comes_again else "stay away"


def _line(role: str, row: Row, *, comes_again: bool) -> str:
    return (
        f"{role:7} {_habit(comes_again=comes_again):13} {row.early_longest_s:35.2f} "
        f"{row.later_p99_s:19.2f} {row.later_longest_s:11.2f} {len(row.not_right):11} "
        f"{row.closed:8} {row.newcomers_longest_s:22.2f} {len(row.newcomers_not_right):11}"
    )
