"""The outcome of a storm, real or in virtual time, from what its tasks and servers reported."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.advice.goal import Outcome
from loadgen.analysis.measured import clients_of_requests
from loadgen.clients.records import Outcome as Ended
from loadgen.scenarios.discovery.driver.family_client import RUN_ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.advice.goal import Goal

_JUDGED = pa.array(["list", "watch"])
"""Operations that count as requests."""


def outcome_of(
    goal: Goal, requests: pa.Table, clients: pa.Table, accounted: Mapping[str, int]
) -> Outcome:
    """Return the outcome of a storm by a goal.

    Args:
        goal: Says by when clients are to be back.
        requests: With the columns of ``ROWS``.
        clients: With those of ``CLIENT_ROWS``; without rows a client is back at its first answer.
        accounted: The most that each server's limiter held.
    """
    asked = requests.filter(pc.is_in(requests["operation"], _JUDGED))
    if not clients.num_rows:
        clients = clients_of_requests(asked)
    # Who is back goes on polling: what the end of the run cut of that was refused by nobody.
    back = clients.filter(pc.is_valid(clients["back_seconds"]))["client"]
    polling = pc.is_in(asked["client"], back.combine_chunks())
    asked = asked.filter(pc.invert(pc.and_(polling, pc.equal(asked["reason"], RUN_ENDED))))
    failed = asked.filter(pc.not_equal(asked["outcome"], str(Ended.ANSWERED)))
    took = pc.subtract(clients["back_seconds"], clients["intended_start_seconds"])
    in_time = pc.sum(pc.less_equal(took, goal.back_within_seconds)).as_py()
    reasons = Counter(
        reason or str(outcome)
        for outcome, reason in zip(
            failed["outcome"].to_pylist(), failed["reason"].to_pylist(), strict=True
        )
    )
    return Outcome(
        clients=clients.num_rows,
        back=in_time or 0,
        slowest_seconds=pc.max(took).as_py(),
        requests=asked.num_rows,
        refused=failed.num_rows,
        accounted=accounted,
        reasons=dict(reasons),
    )


def accounted(processes: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the most that each server's limiter held, as a run's summary says."""
    return {
        name: sum(
            each["high_water_bytes"] or each["highest_scrape_bytes"] or 0
            for each in (told.get("heap"), told.get("direct"))
            if each
        )
        for name, told in processes.items()
    }
