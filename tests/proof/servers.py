"""Broker and proxy as killable processes, their REST and metrics, and the checks at their end."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadgen.places.sampling import kept_samples
from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from loadgen.plan.clients import Namespace
from loadgen.topics.manifest import read_manifest
from tests.proof.result import ProofResult

SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.1
SOCKET_BUFFER_BYTES = 65_536
LOCAL = {"webServicePort": "0", "bindAddress": "127.0.0.1", "advertisedAddress": "127.0.0.1"}
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
OWN_ERROR = b"internal error"
"""Words that both servers log on unexpected errors."""


@dataclass(frozen=True)
class ClusterSettings:
    """The settings of broker and proxy.

    Attributes:
        logs: Folder of logs.
        both: Keys of both.
        broker: Keys of the broker.
        imports: The broker's imports at its start.
        proxy: Keys of the proxy.
    """

    logs: Path
    both: Mapping[str, str]
    broker: Mapping[str, str]
    imports: Sequence[Path] = ()
    proxy: Mapping[str, str] = field(default_factory=dict)

    def broker_launch(self) -> ServerLaunch:
        settings = {"brokerServicePort": "0", **LOCAL, **self.both, **self.broker}
        arguments = [part for path in self.imports for part in ("--import", str(path))]
        return ServerLaunch("broker", settings, self.logs / "broker.log", arguments)

    def proxy_launch(self, broker: ServerProcess) -> ServerLaunch:
        settings = {
            "servicePort": "0",
            "brokerServiceURL": broker.service_url,
            "brokerWebServiceURL": broker.web_url,
            **LOCAL,
            **self.both,
            **self.proxy,
        }
        return ServerLaunch("proxy", settings, self.logs / "proxy.log")


@contextmanager
def judged_cluster(
    settings: ClusterSettings, result: ProofResult, prefix: str = ""
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Run broker and proxy for a block; then nothing may be held, nor errors of our own logged."""
    with running_cluster(settings) as servers:
        yield servers
        held = {server.module: settled_figures(server) for server in servers}
    result.figures[f"{prefix}held at the end"] = held
    check_nothing_held(held, result, prefix)
    check_logs(settings.logs, result, prefix)


@contextmanager
def running_cluster(settings: ClusterSettings) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with ExitStack() as stack:
        broker = stack.enter_context(running_server(settings.broker_launch()))
        yield broker, stack.enter_context(running_server(settings.proxy_launch(broker)))


def limits(limit_mb: int, timeout_millis: int | None = None) -> dict[str, str]:
    """Return the keys of equal limits on heap and direct memory; 0 is off."""
    keys = {}
    for kind in ("Heap", "Direct"):
        key = f"maxTopicListInFlight{kind}MemSize"
        keys[f"{key}MB"] = str(limit_mb)
        if timeout_millis is not None:
            keys[f"{key}PermitsAcquireTimeoutMillis"] = str(timeout_millis)
    return keys


def limited(profile: str, limit_mb: int, timeout_millis: int | None = None) -> dict[str, str]:
    """Return the keys of both servers in a storm: its profile, and its limits."""
    return {
        "floodgateProfile": profile,
        **limits(limit_mb, timeout_millis),
        # With the kernel's default the loopback swallows each answer and hides the effect.
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
    }


def server_address(server: ServerProcess) -> tuple[str, int]:
    """Return host and port of a server's binary protocol."""
    parts = urlsplit(server.service_url)
    return parts.hostname or "", parts.port or 0


def rest(
    web_url: str,
    method: str,
    path: str,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    seconds: float = 10.0,
) -> Any:
    """Send a request below ``/admin/v2``, and return the answer's document."""
    body = None if document is None else json.dumps(document).encode()
    headers = {"Content-Type": "application/json", **(headers or {})}
    url = f"{web_url}/admin/v2/{path}"
    request = urllib.request.Request(url, body, headers, method=method)
    with _OPENER.open(request, timeout=seconds) as response:
        return json.loads(response.read() or b"null")


def samples(server: ServerProcess) -> dict[str, float]:
    """Return the current samples of a server's metrics page."""
    with _OPENER.open(f"{server.web_url}/metrics/", timeout=10) as response:
        return dict(kept_samples(response.read().decode()))


def held_figures(server: ServerProcess) -> dict[str, float]:
    """Return all figures that must be 0 without connections."""
    names = [
        f"pulsar_{server.module}_topic_list_{kind}_{what}"
        for kind in ("heap", "direct")
        for what in ("memory_used_bytes", "queue_size")
    ]
    names.append("floodgate_outbound_pending_bytes")
    if server.module == "broker":
        names.append("pulsar_broker_lookup_pending_requests")
    else:
        names += ["floodgate_proxy_lookup_pending_requests", "pulsar_proxy_active_connections"]
    found = samples(server)
    return {name: found[name] for name in names}


def settled_figures(server: ServerProcess) -> dict[str, float]:
    """Return the held figures once all are 0, or after SETTLE_SECONDS."""
    give_up = time.monotonic() + SETTLE_SECONDS
    found = held_figures(server)
    while any(found.values()) and time.monotonic() < give_up:
        time.sleep(POLL_SECONDS)
        found = held_figures(server)
    return found


def check_nothing_held(
    held: Mapping[str, Mapping[str, float]], result: ProofResult, prefix: str = ""
) -> None:
    """Add the check that both servers are at rest."""
    left = [
        f"{name} {value:.0f}" for part in held.values() for name, value in part.items() if value
    ]
    what = ", ".join(left) or "permits, queues, lookup places and pending bytes are all 0"
    result.check(f"{prefix}nothing is held", not left, f"{prefix}at the end {what}")


def check_logs(logs: Path, result: ProofResult, prefix: str = "") -> None:
    """Add the check that no server logged an unexpected error."""
    found = [path.name for path in sorted(logs.glob("*.log")) if OWN_ERROR in path.read_bytes()]
    what = (
        f"errors of our own in {', '.join(found)}" if found else "no error of our own in the logs"
    )
    result.check(f"{prefix}no error of our own", not found, f"{prefix}{what}")


def expectations(corpus: Path) -> list[Namespace]:
    """Return the expected listing of each namespace by a corpus's manifest."""
    return [
        Namespace(name=name, topics=entry.topics, hash=entry.hash)
        for name, entry in read_manifest(corpus).namespaces.items()
    ]
