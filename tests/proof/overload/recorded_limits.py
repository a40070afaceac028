"""The limits of the recorded overload, and the limiter's report of a server."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from loadgen.places.server_process import ServerProcess
from tests.proof.servers import ClusterSettings, running_cluster, server_address

LIMIT_MB = 1
TIMEOUT_MILLIS = 3_000
ROLES = ("broker", "proxy")
_LIMITER = "/admin/v2/floodgate/limiter"


def limits(limit_mb: int = LIMIT_MB, timeout_millis: int = TIMEOUT_MILLIS) -> dict[str, str]:
    """Return the keys of equal limits on heap and direct memory."""
    keys = {}
    for kind in ("Heap", "Direct"):
        key = f"maxTopicListInFlight{kind}MemSize"
        keys[f"{key}MB"] = str(limit_mb)
        keys[f"{key}PermitsAcquireTimeoutMillis"] = str(timeout_millis)
    return keys


def cluster(
    logs: Path, both: Mapping[str, str], imports: Sequence[Path], **broker: str
) -> AbstractContextManager[tuple[ServerProcess, ServerProcess]]:
    """Run a broker and a proxy for a block, with topics in memory."""
    keys = {"metadataStoreUrl": "memory:local", **broker}
    return running_cluster(ClusterSettings(logs, both, keys, imports))


def server_of(role: str, servers: tuple[ServerProcess, ServerProcess]) -> ServerProcess:
    return servers[ROLES.index(role)]


def port_of(server: ServerProcess) -> int:
    return server_address(server)[1]


def limiter_report(server: ServerProcess) -> dict[str, Any]:
    """Return the current report of the limiter's endpoint, with all listed holders."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{server.web_url}{_LIMITER}?limit=500", timeout=10) as response:
        report: dict[str, Any] = json.load(response)
    return report


def held(report: Mapping[str, Any]) -> dict[str, int]:
    """Return acquired bytes and queue sizes of both budgets, by name."""
    return {
        f"{kind}_{name}": int(report[kind][key])
        for kind in ("heap", "direct")
        for name, key in (("bytes", "acquiredBytes"), ("queue", "queueSize"))
    }
