"""The demo's storm once more, of consumers that retry when they are refused.

It would take minutes with real servers; in virtual time, with their own code, it takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.cluster import ClusterPlan, TopicsPlan
from loadgen.demo.plan import (
    RETURNING_MEASURE_SECONDS,
    RETURNING_RUN,
    returning_scenario,
    run_settings,
)
from loadgen.executors.processes import RunExecutor
from loadgen.report.pictures import RUN_DIRECTORIES
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from loadgen.topics.plan import TopicPlan


def run_returning_storm(
    out: Path, made: TopicPlan, names: Iterable[str], clients: int, read_rate: float
) -> dict[str, Any]:
    """Run it in virtual time and return its summary as written.

    Args:
        out: The demo's directory.
        made: The plan of the topics that the storms before listed.
        names: Their namespaces.
        clients: Programs.
        read_rate: How fast each reads, bytes a second.

    Raises:
        LoadgenError: It could not be run.
    """
    settings = run_settings(RETURNING_RUN)
    del settings["floodgateProfile"]
    cluster = ClusterPlan(
        profile="pulsar",
        broker=settings,
        proxy=settings,
        topics=TopicsPlan(
            namespaces=made.namespaces,
            per_namespace=made.topics // made.namespaces,
            mean_name_bytes=made.shape.mean_name_bytes,
            seed=made.seed,
        ),
    )
    # A whole list has the names of a plan that deals evenly; that is not checked here.
    namespaces = [NamespaceExpectation(name=name) for name in names]
    run = RunOptions(
        name=RETURNING_RUN.name,
        label=RETURNING_RUN.label,
        out=out / RUN_DIRECTORIES,
        executor=RunExecutor.VIRTUAL,
        tasks=1,
        cluster=cluster,
    )
    return execute(returning_scenario(namespaces, clients, read_rate), run).summary


def returning_sentence(summary: Mapping[str, Any]) -> str:
    """Say how many consumers recovered, and how many requests that took."""
    (group,) = summary["groups"].values()
    why = "Refused consumers join the queue again, so it stays long."
    return (
        "Real consumers retry. The same storm with Pulsar's limits, simulated with "
        f"{plural(group['clients'], 'consumer')} that restart 5 s after a refusal: "
        f"{group['back']:,} recover within {RETURNING_MEASURE_SECONDS:g} s, after "
        f"{group['listings']:,} list requests. {why if group['restarts'] else ''}".rstrip()
    )
