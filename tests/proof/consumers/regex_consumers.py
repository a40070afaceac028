"""A thousand regex consumers of the official Python client attach through the proxy, twice.

Each has a client and a connection, and matches ten topics of one namespace. All are killed and
restarted simultaneously. Broker and proxy list under tight limits.
"""

import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from loadgen.engine.connecting import raise_open_file_limit
from loadgen.places.sampling import ServerWatch
from loadgen.places.server_process import ServerProcess, running_server
from tests.official.clients import ClientMissingError
from tests.official.servers import ANY_TARGET
from tests.proof.consumers.crowd import Attached, Crowd, CrowdSize, count_attachments
from tests.proof.consumers.picture import Curves, draw
from tests.proof.overload.recorded_limits import limits
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import (
    ClusterSettings,
    check_logs,
    check_nothing_held,
    settled_figures,
)

FULL = CrowdSize(consumers=1_000, processes=10)
QUICK = CrowdSize(consumers=50, processes=2)
LIMIT_MB = 1
TIMEOUT_MILLIS = 60_000
BROKER = {
    "metadataStoreUrl": "memory:local",
    "exposeTopicLevelMetricsInPrometheus": "false",
}
"""Sampling 10,000 topics four times a second would cost more than the measured work."""
COLD, RESTART = "cold", "restart"
OWN_CONNECTIONS = 4
"""Descriptors of a client at the proxy: two connections and the two behind them."""


def prove(options: ProofOptions) -> ProofResult:
    """Attach the crowd, kill it, attach it again."""
    size = QUICK if options.quick else FULL
    topics = options.out / "topics.txt"
    topics.write_text("".join(f"{name}\n" for name in size.names()), encoding="utf-8")
    raise_open_file_limit(OWN_CONNECTIONS * size.consumers + 1_000)
    # The client lists all topics and filters locally. Shared answers are charged once, so that no
    # request waits; private answers are charged each, as upstream's are.
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateResponseBuffers": "private",
        **limits(LIMIT_MB, TIMEOUT_MILLIS),
    }
    result = ProofResult()
    settings = ClusterSettings(options.out, keys, BROKER, [topics])
    try:
        with ExitStack() as stack:
            broker = stack.enter_context(running_server(settings.broker_launch()))
            launch = settings.proxy_launch(broker)
            launch = replace(launch, settings={**launch.settings, **ANY_TARGET})
            servers = broker, stack.enter_context(running_server(launch))
            _attach_twice(options, size, servers, result)
            held = {one.module: settled_figures(one) for one in servers}
    except ClientMissingError as missing:
        raise ProofError(str(missing)) from None
    result.figures["held"] = held
    check_nothing_held(held, result)
    check_logs(options.out, result)
    return result


def _attach_twice(
    options: ProofOptions,
    size: CrowdSize,
    servers: tuple[ServerProcess, ServerProcess],
    result: ProofResult,
) -> None:
    broker, proxy = servers
    urls = {one.module: one.web_url for one in servers}
    pids = {one.module: one.pid for one in servers}
    starts: dict[str, Attached] = {}
    begun = time.perf_counter()
    spans: dict[str, tuple[float, float]] = {}
    with ServerWatch(urls, pids) as watch, Crowd(size, proxy.service_url, options.out) as crowd:
        for name in (COLD, RESTART):
            options.note(f"{name}: {size.consumers:,} consumers attach")
            at = time.perf_counter()
            crowd.kill()
            crowd.start()
            found = crowd.attached()
            found.seconds = time.perf_counter() - at
            spans[name] = (at - begun, found.seconds)
            options.note(f"{name}: REST counts")
            found.attachments = count_attachments(broker, size)
            starts[name] = found
    curves = Curves(watch, begun, spans)
    result.figures = {
        **{name: {**asdict(one), "refused": one.refused[:5]} for name, one in starts.items()},
        "servers": curves.figures(),
        "pictures": [str(path) for path in draw(curves, size, options.out)],
    }
    for name, one in starts.items():
        _judge(name, one, size, result)
    _judge_permits(result)
    if size is FULL:
        _judge_waiting(result)


def _judge(name: str, found: Attached, size: CrowdSize, result: ProofResult) -> None:
    refused = "".join(found.refused[:1])
    result.check(
        f"{name}: all attach",
        not found.refused and found.attachments == size.topics,
        f"{name}: {found.attachments:,} of {size.topics:,} attachments after {found.seconds:.1f} s,"
        f" {len(found.refused)} of {size.consumers:,} consumers refused {refused}".rstrip(),
    )


def _judge_permits(result: ProofResult) -> None:
    servers: dict[str, dict[str, Any]] = result.figures["servers"]
    most = LIMIT_MB * 1024 * 1024
    for module, found in servers.items():
        used = {kind: found[f"{kind}_permits_peak_bytes"] for kind in ("heap", "direct")}
        waiting = max(found[f"{kind}_waiting_peak"] for kind in used)
        result.check(
            f"permits of the {module}",
            max(used.values()) <= most,
            f"{module}: at most {used['heap'] / 1e6:.2f} MB of heap and {used['direct'] / 1e6:.2f} "
            f"MB of direct permits of {most / 1e6:.2f} MB, and {waiting:.0f} waited; "
            f"peak of {found['resident_peak_bytes'] / 1e6:.0f} MB resident, "
            f"{found['cpu_seconds']:.1f} s of processor time",
        )


def _judge_waiting(result: ProofResult) -> None:
    """Check that requests waited for the limits: without waits the proof shows nothing."""
    waited = {
        module: max(found["heap_waiting_peak"], found["direct_waiting_peak"])
        for module, found in result.figures["servers"].items()
    }
    what = " and ".join(f"{most:.0f} in the {module}" for module, most in waited.items())
    result.check("requests waited", any(waited.values()), f"at most {what} waited for permits")
