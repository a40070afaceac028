"""The advice for the demo's own cluster: what its storm would take, at the demo's end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.advice.advice import Request
from loadgen.advice.advisor import quick_advice
from loadgen.advice.goal import Goal
from loadgen.advice.limits import Limits, Setting
from loadgen.advice.report import verdict
from loadgen.advice.workload import NamespaceShape, Readers, Workload
from loadgen.demo.plan import CLIENT_TIMEOUT_SECONDS, LIMIT_MB, SOCKET_BUFFER_BYTES

if TYPE_CHECKING:
    from loadgen.advice.advice import Advice
    from loadgen.cluster import Profile
    from loadgen.demo.topics import DemoTopics

_NAMESPACES = 10
"""As many stand for all, which are alike: topics that are made again take time."""
GOAL = Goal(back_within_seconds=60.0)


def advice_for(
    topics: DemoTopics, clients: int, read_rate: float, profile: Profile = "pulsar"
) -> Advice:
    """Return which limits would bring all of the demo's clients back within a minute.

    Takes some seconds: the limits are computed, and simulated in virtual time.
    """
    each = max(1, topics.topics // max(1, len(topics.namespaces)))
    shapes = tuple(
        NamespaceShape(one.name, one.topics or each, topics.answer_bytes - 2 * each)
        for one in topics.namespaces[:_NAMESPACES]
    )
    workload = Workload(
        shapes,
        {"once": clients},
        Readers(rate=read_rate, network_bytes=2 * SOCKET_BUFFER_BYTES),
        operation_timeout_seconds=CLIENT_TIMEOUT_SECONDS,
    )
    limits = Limits(heap_mb=LIMIT_MB, direct_mb=LIMIT_MB, pause=profile == "floodgate")
    request = Request(workload, GOAL, profile, Setting(limits, limits), seconds=8.0)
    return replace(quick_advice(request), not_confirmed="`loadgen advise` does that")


def advice_lines(advice: Advice) -> list[str]:
    """Return the advice in a few lines: the verdict, and each server's memory limits."""
    lines = [
        f"Advised limits for Pulsar, for clients that request once (goal: {advice.request.goal}). "
        f"{verdict(advice)} Both are the least that met the goal on a quiet machine: leave room "
        "above them."
    ]
    if advice.setting is not None:
        for server in advice.setting.servers:
            limits = ", ".join(
                f"{each.key}={each.value}"
                for each in advice.findings
                if each.server == server and each.key.endswith("SizeMB")
            )
            lines.append(f"{server}.conf: {limits}")
        lines.append(
            "`loadgen advise` finds all keys for your cluster, what each costs, and what a "
            "smaller value would do."
        )
    return [*lines, *advice.obstacles]


def advised(advice: Advice) -> dict[str, Any]:
    """Describe the advice for the demo's summary."""
    keys: dict[str, dict[str, str]] = {server: {} for server in ("broker", "proxy")}
    for each in advice.findings:
        keys[each.server][each.key] = each.value
    return {"met": advice.met, "verdict": verdict(advice), "keys": keys}
