"""Messages of 1 KiB through a proxy's pipes: with faults disabled, enabled, and one set.

A bare server behind three proxies answers SENDs and dispatches messages. If the key for faults is
off, a pipe copies bytes. If it is on, a pipe reads frame lengths; while a fault may concern its
client, a pipe reads every frame. The fault never acts. Client and bare server limit the rates, too,
so the proxy's processor time per message is the better figure.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import measured_server, run_json, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_proxy
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

OFF, ON, SET = "faults off", "key on, none set", "one set"
MODES = {"single": 2.0, "batched": 0.5}
"""Most seconds: the bare server keeps all messages."""
NEVER = {"on": ["SEEK"], "do": {"action": "drop"}}
Way = tuple[str, str, str, str]
"""Host, port and process of a proxy, and the server behind."""
Round = dict[str, dict[str, dict[str, float]]]


def run(options: BenchOptions) -> BenchResult:
    """Measure all three proxies in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: A proxy did not start.
    """
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        for number in range(options.rounds):
            with _ways(Path(folder)) as ways:
                rounds.append(_measured(ways, options, number))
    return conclude(rounds)


@contextmanager
def _ways(folder: Path) -> Iterator[dict[str, Way]]:
    with ExitStack() as stack:
        bare = stack.enter_context(yardstick("benchmarks.messages.bare_server"))
        target = f"{bare.host}:{bare.port}"
        ways = {}
        for name in (OFF, ON, SET):
            settings = {
                **local_proxy(f"pulsar://{target}", ""),
                "floodgateFaultsEnabled": str(name is not OFF).lower(),
            }
            launch = ServerLaunch("proxy", settings, folder / "proxy.log")
            proxy = stack.enter_context(running_server(launch))
            if name is SET:
                _set_fault(proxy.web_url)
            host, port, pid = measured_server(proxy)
            ways[name] = (host, str(port), str(pid), target)
        yield ways


def _set_fault(web_url: str) -> None:
    request = urllib.request.Request(
        f"{web_url}/admin/v2/floodgate/faults",
        json.dumps(NEVER).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).close()


def _measured(ways: Mapping[str, Way], options: BenchOptions, number: int) -> Round:
    found: Round = {mode: {} for mode in MODES}
    for mode, most in MODES.items():
        for name, (host, port, pid, target) in ways.items():
            options.note(f"round {number + 1}: {mode}, {name}")
            words = (host, port, pid, mode, str(min(most, options.seconds)), target)
            found[mode][name] = run_json("benchmarks.messages.client", *words)
    return found


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Return the figures of all rounds as a benchmark result."""
    figures = []
    for mode in MODES:
        for way in ("in", "out"):
            of = {name: [found[mode][name] for found in rounds] for name in (OFF, ON, SET)}
            rate, cpu = f"{way}_per_second", f"{way}_cpu_micros"
            for name, values in of.items():
                said = f"{mode} {way}: {name}"
                figures.append(Figure(said, "messages/s", [one[rate] for one in values]))
                figures.append(Figure(f"CPU a message, {said}", "us", [one[cpu] for one in values]))
            for name in (ON, SET):
                ratios = [
                    one[rate] / plain[rate] for one, plain in zip(of[name], of[OFF], strict=True)
                ]
                figures.append(Figure(f"{mode} {way}: {name} / {OFF}", "ratio", ratios))
    return BenchResult(figures, rounds=list(rounds))
