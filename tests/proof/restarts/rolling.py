"""Two brokers and two proxies restarted in sequence beneath official clients.

The brokers share a database, and each keeps its messages in a separate log. Clients have the
addresses of both brokers, and of both proxies. Each process gets SIGTERM and is restarted. No
application call fails, and no receipted message is missing.
"""

import time
from collections.abc import Mapping
from typing import Any

from tests.proof.programs import LANGUAGES
from tests.proof.restarts.loads import finished_loads, running_loads
from tests.proof.restarts.servers import Fleet, running_fleet
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs
from tests.support.processes.postgresql import running_postgresql

QUIET_SECONDS = 3.0
"""Before each restart, so that all clients are attached again."""
SLOW_DRAIN_SECONDS = 9.0
"""A slower process was killed, or nearly."""


def prove(options: ProofOptions) -> ProofResult:
    """Restart each process once; in a long proof twice."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    rounds = 1 if options.quick else 2
    with (
        running_postgresql() as database,
        running_fleet(options.out, database.url()) as fleet,
        running_loads(options.out, fleet, LANGUAGES) as loads,
    ):
        drains = [
            _restarted(fleet, name, options) for _ in range(rounds) for name in fleet.processes
        ]
        time.sleep(QUIET_SECONDS)
        found = finished_loads(loads)
    result.figures = {**found, "drains": drains}
    judge_calls(found, result)
    judge_messages(found, result)
    longest = max(drain["seconds"] for drain in drains)
    result.check(
        "drains end",
        longest < SLOW_DRAIN_SECONDS,
        f"the longest of {len(drains)} drains took {longest:.1f} s",
    )
    check_logs(options.out, result)
    return result


def _restarted(fleet: Fleet, name: str, options: ProofOptions) -> dict[str, Any]:
    """Restart a process; return the durations of its drain and its start."""
    options.note(f"restarting {name}")
    time.sleep(QUIET_SECONDS)
    begun = time.monotonic()
    fleet.processes[name].stop()
    drained = time.monotonic()
    fleet.processes[name].restart()
    return {
        "process": name,
        "seconds": round(drained - begun, 2),
        "start_seconds": round(time.monotonic() - drained, 2),
    }


# -- verdicts -------------------------------------------------------------------------------------


def judge_calls(found: Mapping[str, Any], result: ProofResult) -> None:
    """Add the check that no call failed, with the longest pause."""
    failures, calls = found["failures"], sum(found["calls"].values())
    kind, seconds = max(found["longest_seconds"].items(), key=lambda pair: pair[1])
    said = "; ".join(sorted(set(failures))[:5]) or "none"
    each = found["calls_by_language"]
    by_language = ", ".join(f"{language} {count:,}" for language, count in each.items())
    result.check(
        "no call fails",
        not failures and calls > 0,
        f"{calls:,} calls of applications ({by_language}), {len(failures)} failed ({said}); the "
        f"longest pause was {seconds:.1f} s ({kind})",
    )


def judge_messages(found: Mapping[str, Any], result: ProofResult) -> None:
    """Add the check that no receipted message is missing."""
    missing = sum(sum(way.values()) for way in found["missing"].values())
    result.check(
        "nothing receipted is missing",
        missing == 0 and found["receipted"] > 0,
        f"{found['receipted']:,} messages had a receipt; {missing} of them did not reach a "
        f"subscription; {found['repeated']} came more than once",
    )
