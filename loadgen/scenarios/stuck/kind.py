"""The registry's row of the scenario ``stuck``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.scenarios.kind import ReportWords, ScenarioKind
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.summary import PEERS_NAME, stuck_document, write_peers
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def _require_peers(summary: Mapping[str, Any], directory: Path) -> None:
    stuck = summary["stuck"]
    if stuck["unreachable"]:
        raise LoadgenError(
            f"{stuck['unreachable']} of {stuck['peers']} stuck peers could not connect; "
            f"{directory / PEERS_NAME} says why"
        )


def _describe(scenario: Mapping[str, Any]) -> str:
    healthy = (
        f"{plural(scenario['clients'], 'healthy client')}, a listing each every "
        f"{format_seconds(scenario['interval_seconds'])}, for "
        f"{format_seconds(scenario['duration_seconds'])}."
    )
    peers = scenario["stuck_peers"]
    if not peers:
        return f"{healthy} There are no non-reading clients."
    rate = scenario["stuck_read_rate_bytes_per_second"]
    reads = f"reads {format_bytes(rate)} a second" if rate else "reads nothing"
    who = "a client requests" if peers == 1 else f"{peers:,} clients request"
    reads = reads if peers == 1 else reads.replace("reads", "read")
    listings = plural(scenario["stuck_pipelined"], "listing") + ("" if peers == 1 else " each")
    seconds = scenario["stuck_seconds"]
    stay = f" for {format_seconds(seconds)}" if seconds else ""
    return (
        f"{healthy} At {format_seconds(scenario['stuck_at_seconds'])} {who} {listings} at once "
        f"and {reads}{stay}."
    )


STUCK = ScenarioKind(
    model=StuckScenario,
    task="loadgen.scenarios.stuck.task:StuckTask",
    help="healthy clients list on a schedule, while other clients request lists and read none.",
    example="""\
  loadgen run --scenario stuck --service-url pulsar://127.0.0.1:6650 \\
    --namespace public/default --stuck-pipelined 64 --executor process""",
    words=ReportWords(
        title="Beside clients that read nothing",
        name="listings beside clients that read nothing",
        at_zero="the first listing is due",
        got="got the topic list",
        describe=_describe,
        more="more --stuck-peers, or more --stuck-pipelined",
        more_if_shared=True,
    ),
    report="loadgen.report.stuck.section:STUCK_ADDITION",
    files=(PEERS_NAME,),
    write=write_peers,
    summarize=lambda scenario, reports: {
        "stuck": stuck_document(scenario.stuck_pipelined, reports)
    },
    check=_require_peers,
)
