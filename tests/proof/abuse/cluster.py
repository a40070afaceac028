"""Broker and proxy protected as by an operator, and the attackers' knowledge of them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.places.server_process import ServerProcess
from tests.proof.abuse.crowd import Target
from tests.proof.abuse.protection import ATTACKER, Protection, grant
from tests.proof.result import ProofOptions
from tests.proof.servers import ClusterSettings, running_cluster, server_address
from tests.support.mid_topics import mid_names

HOSTILE_NAMESPACES = tuple(f"hostile/ns-{number}" for number in range(100))
HOSTILE_TOPICS, HEALTHY_TOPICS = 4_000, 500
MORE_URGENT = -10


@contextmanager
def attacked_cluster(
    options: ProofOptions, protected: Protection
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    topics = options.out / "topics.parquet"
    write_topics(topics)
    logs = options.out / "logs"
    settings = ClusterSettings(logs, protected.both, protected.broker, (topics,), protected.proxy)
    with running_cluster(settings) as servers:
        for server in servers:
            more_urgent(server.pid)
        grant(servers[0], protected)
        yield servers


def more_urgent(pid: int) -> None:
    """Raise the priority of a session leader's process, as if it had separate cores.

    A no-op without the right to. The kernel schedules by session where autogroups are on.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, MORE_URGENT)
        Path(f"/proc/{pid}/autogroup").write_text(str(MORE_URGENT))


def write_topics(path: Path) -> None:
    """Write the namespaces of healthy clients and attackers."""
    sizes = {
        "public/healthy": HEALTHY_TOPICS,
        "public/healthy-messages": 1,
        "hostile/flood": 1,
        **dict.fromkeys(HOSTILE_NAMESPACES, HOSTILE_TOPICS),
    }
    schema = pa.schema({"namespace": pa.string(), "topic": pa.string()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for namespace, size in sizes.items():
            names = mid_names(namespace, size)
            writer.write_table(pa.table([[namespace] * len(names), names], schema=schema))


def targets(
    servers: tuple[ServerProcess, ServerProcess], protected: Protection, scale: float
) -> list[dict[str, Any]]:
    """Return the attacker's description of both servers, for JSON."""
    tunnel = "{}:{}".format(*server_address(servers[0]))
    return [
        asdict(_target(each, protected, tunnel if each.module == "proxy" else None, scale))
        for each in servers
    ]


def _target(
    server: ServerProcess, protected: Protection, tunnel: str | None, scale: float
) -> Target:
    host, port = server_address(server)
    tls, web_tls = protected.tls_ports[server.module]
    return Target(
        role=server.module,
        binary=(host, port),
        web=(host, int(server.web_url.rpartition(":")[2])),
        tls=(host, tls),
        web_tls=(host, web_tls),
        token=protected.token(ATTACKER),
        bad_tokens=protected.bad_tokens(),
        namespaces=HOSTILE_NAMESPACES,
        tunnel=tunnel,
        scale=scale,
    )
