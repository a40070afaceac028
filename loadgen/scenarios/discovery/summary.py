"""The summary's figures of groups: who is back, when, and at what price."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.results.latency import percentiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.clients.records import TaskReport
    from loadgen.scenarios.discovery.scenario import DiscoveryScenario


def groups_document(
    scenario: DiscoveryScenario, reports: Sequence[TaskReport]
) -> dict[str, dict[str, Any]]:
    """Return the figures of each group, under ``groups``."""
    clients = pa.concat_tables([report.clients for report in reports])
    requests = pa.concat_tables([report.rows for report in reports])
    return {
        "groups": {
            group.name: _group(
                group.family,
                clients.filter(pc.equal(clients["group"], group.name)),
                requests.filter(pc.equal(requests["group"], group.name)),
            )
            for group in scenario.groups
        }
    }


def _group(family: str, clients: pa.Table, requests: pa.Table) -> dict[str, Any]:
    outcomes = Counter(clients["outcome"].to_pylist())
    asked = zip(requests["operation"].to_pylist(), requests["outcome"].to_pylist(), strict=True)
    operations = Counter(asked)
    return {
        "family": family,
        "clients": clients.num_rows,
        "back": outcomes["back"],
        "refused": _reasons(clients, "refused"),
        "lost": _reasons(clients, "lost"),
        "unfinished": _reasons(clients, "unfinished"),
        "back_seconds": _behind_start(clients, "back_seconds"),
        "listed_seconds": _behind_start(clients, "listed_seconds"),
        "requests": {
            operation: {
                outcome: count for (kind, outcome), count in operations.items() if kind == operation
            }
            for operation in dict.fromkeys(kind for kind, _ in operations)
        },
        "bytes": pc.sum(requests["bytes"]).as_py() or 0,
        **{
            name: pc.sum(clients[name]).as_py() or 0
            for name in ("listings", "reconnects", "restarts", "connections")
        },
    }


def _reasons(clients: pa.Table, outcome: str) -> dict[str, int]:
    chosen = clients.filter(pc.equal(clients["outcome"], outcome))
    return dict(Counter(chosen["reason"].to_pylist()).most_common())


def _behind_start(clients: pa.Table, moment: str) -> dict[str, float] | None:
    took = pc.drop_null(pc.subtract(clients[moment], clients["intended_start_seconds"]))
    return percentiles(took.to_pylist())
