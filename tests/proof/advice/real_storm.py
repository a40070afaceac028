"""A storm of an advice against a real broker: topics, limits and result."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from client.admin.pulsar_admin import PulsarAdmin
from loadgen.places.options import RunOptions
from loadgen.places.sampling import KernelBooks
from loadgen.results.results import Results
from loadgen.studies.advise.advice import run_storm
from loadgen.studies.advise.goal import Outcome
from loadgen.studies.advise.limits import Setting
from loadgen.topics.loading import TopicLoader
from loadgen.topics.reading import TopicToCreate
from tests.proof.advice.clusters import ProvenCluster
from tests.proof.real_broker import real_broker
from tests.proof.result import ProofError
from tests.proof.servers import rest
from tests.support.processes.free_port import free_port

_SETTLE_SECONDS, _LOOK_SECONDS, _IDLE = 300.0, 3.0, 0.15
"""The longest time for a broker to settle; idle is this share of a core."""
_CALLS_AT_ONCE = 16
_CALL_SECONDS = 120.0


class RealBroker(NamedTuple):
    """A running broker: addresses and process."""

    service_url: str
    admin_url: str
    pid: int

    def settle(self) -> None:
        """Wait until the broker has finished the work of new topics, or of loading topics.

        At the first lookup in a bundle a broker loads all its topics, which takes minutes.

        Raises:
            ProofError: The broker is still busy after five minutes.
        """
        give_up, books = time.monotonic() + _SETTLE_SECONDS, KernelBooks("broker", self.pid)
        spent = books.samples()["process_cpu_seconds_total"]
        while time.monotonic() < give_up:
            time.sleep(_LOOK_SECONDS)
            before, spent = spent, books.samples()["process_cpu_seconds_total"]
            if spent - before < _IDLE * _LOOK_SECONDS:
                return
        raise ProofError(f"the broker is not idle after {_SETTLE_SECONDS:.0f} s")


@contextmanager
def real_cluster(cluster: ProvenCluster, setting: Setting) -> Iterator[RealBroker]:
    """Run a real broker with limits and topics for a block.

    Raises:
        ProofError: The broker does not start.
    """
    service, web = free_port(), free_port()
    keys = {
        "brokerServicePort": str(service),
        "webServicePort": str(web),
        **setting.broker.keys(),
    }
    with real_broker(keys) as pid:
        broker = RealBroker(f"pulsar://127.0.0.1:{service}", f"http://127.0.0.1:{web}", pid)
        asyncio.run(_make_topics(cluster, broker.admin_url))
        broker.settle()
        yield broker


async def _make_topics(cluster: ProvenCluster, admin_url: str) -> None:
    topics = (TopicToCreate(topic, size) for topic, size in cluster.topics())
    async with PulsarAdmin(admin_url, _CALL_SECONDS) as admin:
        await TopicLoader(admin, _CALLS_AT_ONCE).load(topics, lambda _: None)


def storm(
    cluster: ProvenCluster, setting: Setting, broker: RealBroker, out: Path, name: str
) -> Outcome:
    """Run the advice's storm and return its result."""
    options = RunOptions(
        name=name, out=out, service_url=broker.service_url, admin_urls={"broker": broker.admin_url}
    )
    outcome = run_storm(cluster.question(), setting, options)
    with Results.open(out / name) as results:
        wrong = results.value("SELECT count_if(outcome = 'wrong') FROM requests")
        sizes = {
            row[key] for row in results.query("answers") for key in ("least_topics", "most_topics")
        }
    if wrong or sizes - {*cluster.sizes}:
        raise ProofError(f"of {name} {wrong} answers are wrong; lists of {sorted(sizes)} topics")
    return outcome


def limits_in_force(admin_url: str) -> dict[str, str]:
    """Return the effective configuration of a broker."""
    told: dict[str, str] = rest(admin_url, "GET", "brokers/configuration/runtime")
    return told
