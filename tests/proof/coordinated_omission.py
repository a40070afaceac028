"""A server that stands still for 200 ms, asked on a schedule over real sockets.

It closes the connection and then does nothing at all, so what falls due meanwhile is sent when it
moves again. Response times have the waiting, each request its own part; service times have none.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.stuck.scenario import StuckScenario
from tests.proof.result import ProofOptions, ProofResult
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE = "load/ns"
INTERVAL_SECONDS, SECONDS = 0.01, 10.0
STALL_SECONDS, STALLS_AT_REQUEST = 0.2, 500
# What two busy cores may add to a moment.
TOLERANCE_SECONDS = 0.03
_TURNS_TO_CLOSE = 3


@dataclass
class StallingBroker(StandInBroker):
    """Closes the connection of one request and stands still."""

    async def _answer(self, command: pb.BaseCommand, writer: asyncio.StreamWriter) -> bool:
        listing = command.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE
        if listing and len(self.requests) == STALLS_AT_REQUEST:
            self.requests.append(NAMESPACE)
            writer.transport.abort()
            for _ in range(_TURNS_TO_CLOSE):
                await asyncio.sleep(0)
            time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - everything stands still
            return False
        return await super()._answer(command, writer)


def prove(options: ProofOptions) -> ProofResult:
    """Compare the percentiles of both times with those that follow from the stall."""
    scenario = StuckScenario(
        service_url="pulsar://127.0.0.1:1",
        namespaces=(NamespaceExpectation(name=NAMESPACE),),
        clients=1,
        interval_seconds=INTERVAL_SECONDS,
        duration_seconds=SECONDS,
        stuck_peers=0,
    )
    options.note(f"{SECONDS / INTERVAL_SECONDS:.0f} requests, a stall of {STALL_SECONDS:g} s")
    with running(StallingBroker({NAMESPACE: topic_names(NAMESPACE, 10)})) as url:
        asked = scenario.model_copy(update={"service_url": url})
        result = execute(asked, RunOptions("stalled", out=options.out.resolve(), tasks=1))
    summary = result.summary
    found = ProofResult(
        {
            "answered": summary["answered"],
            "response_seconds": summary["latency_seconds"],
            "service_seconds": summary["service_latency_seconds"],
        }
    )
    _judge(found, summary["latency_seconds"], summary["service_latency_seconds"])
    requests = round(SECONDS / INTERVAL_SECONDS)
    found.check(
        "nothing was left out",
        summary["answered"] == requests - 1,
        f"{summary['answered']} of {requests} were answered; the one that met the stall was not",
    )
    return found


def _judge(found: ProofResult, response: Mapping[str, float], service: Mapping[str, float]) -> None:
    # Of 1,000 requests twenty fall due in the stall, each an interval later than the one before:
    # so many of them are slower than the percentile.
    slower = {"p99": 10, "p999": 1, "max": 1}
    for name, waits in slower.items():
        right = STALL_SECONDS - waits * INTERVAL_SECONDS
        found.check(
            f"response {name}",
            abs(response[name] - right) <= TOLERANCE_SECONDS,
            f"response {name} is {response[name] * 1000:.0f} ms, by the schedule "
            f"{right * 1000:.0f} ms",
        )
    found.check(
        "service p99",
        service["p99"] < TOLERANCE_SECONDS,
        f"service p99 is {service['p99'] * 1000:.0f} ms: it shows nothing of a stall of "
        f"{STALL_SECONDS * 1000:.0f} ms",
    )
