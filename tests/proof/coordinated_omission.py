"""A server that stalls for 200 ms, under scheduled requests over real sockets.

It closes the connection and then blocks, so that requests due meanwhile are sent after the stall.
Response times include the wait, each request its part; service times do not.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import proto.PulsarApi_pb2 as pb
from loadgen.documents.model import Document
from loadgen.engine.totals import nearest_rank
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from tests.proof.result import ProofOptions, ProofResult
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

NAMESPACE = "load/ns"
INTERVAL_SECONDS, SECONDS = 0.01, 10.0
STALL_SECONDS, STALLS_AT_REQUEST = 0.2, 500
# Tolerance for two busy cores.
TOLERANCE_SECONDS = 0.03
_TURNS_TO_CLOSE = 3


@dataclass
class StallingBroker(StandInBroker):
    """Closes the connection of one request and stalls."""

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
    """Compare the percentiles of both times with the values computed from the stall."""
    steady = {"name": "steady", "do": "list", "count": 1, "every": INTERVAL_SECONDS}
    document = Document.model_validate(
        {
            "name": "stalled",
            "topics": {"of": [NAMESPACE]},
            "clients": [steady],
            "phases": {"measure": SECONDS},
        }
    )
    options.note(f"{SECONDS / INTERVAL_SECONDS:.0f} requests, a stall of {STALL_SECONDS:g} s")
    with running(StallingBroker({NAMESPACE: topic_names(NAMESPACE, 10)})) as url:
        run = RunOptions(options.out.resolve(), service_url=url, tasks=1)
        rows = pq.read_table(experiment(document, run) / "requests")
    rows = rows.filter(pc.equal(rows["outcome"], "answered"))
    response, service = (
        _percentiles(rows["response_seconds"]),
        _percentiles(rows["service_seconds"]),
    )
    found = ProofResult(
        {
            "answered": rows.num_rows,
            "response_seconds": response,
            "service_seconds": service,
        }
    )
    _judge(found, response, service)
    requests = round(SECONDS / INTERVAL_SECONDS)
    found.check(
        "nothing was left out",
        rows.num_rows == requests - 1,
        f"{rows.num_rows} of {requests} were answered; the one that met the stall was not",
    )
    return found


def _percentiles(seconds: pa.ChunkedArray) -> dict[str, float]:
    ordered = sorted(seconds.to_pylist())
    shares = {"p99": 0.99, "p999": 0.999, "max": 1.0}
    return {name: nearest_rank(ordered, share) for name, share in shares.items()}


def _judge(found: ProofResult, response: Mapping[str, float], service: Mapping[str, float]) -> None:
    # Of 1,000 requests twenty fall due in the stall, each an interval after its predecessor: so
    # many are slower than the percentile.
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
