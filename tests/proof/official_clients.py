"""Official clients of several languages and ages, against a broker and through a proxy."""

import os
import shutil
from collections.abc import Callable, Iterator

from tests.differential.sides import ENVIRONMENT, PROXY_ENVIRONMENT
from tests.official.clients import (
    ClientMissingError,
    OfficialClient,
    go_client,
    java_client,
    node_client,
    python_client,
)
from tests.official.runs import ClientRun, Target, run_client, run_restart
from tests.official.servers import Servers, floodgate
from tests.proof.result import ProofOptions, ProofResult

PROFILES = ("pulsar", "floodgate")
NOT_IN_3_6 = frozenset({"table_view"})
NOT_IN_3_1 = NOT_IN_3_6 | {
    "access_modes",
    "batch_index",
    "dead_letter",
    "ordering_key",
    "reader_at",
}
CLIENTS: dict[str, Callable[[], OfficialClient]] = {
    "Python, current": python_client,
    # It retries a terminated topic until its timeout, on a real broker too.
    "Python 3.6.1": lambda: python_client(
        "3.6.1", NOT_IN_3_6, {"terminated": {"refused": "Timeout"}}
    ),
    "Python 3.1.0": lambda: python_client("3.1.0", NOT_IN_3_1),
    "Java": java_client,
    "Go": go_client,
    "Node.js": node_client,
}


def prove(options: ProofOptions) -> ProofResult:
    """Run every available client, in every way."""
    result = ProofResult({"clients": {}})
    profiles = PROFILES[-1:] if options.quick else PROFILES
    clients = dict(_clients(options, result))
    _play_to_the_real_one(clients, options, result)
    for profile in profiles:
        shutil.rmtree(options.out / profile, ignore_errors=True)
        with floodgate(profile, options.out / profile) as servers:
            for name, client in clients.items():
                _play(profile, name, client, servers, options, result)
    return result


def _clients(options: ProofOptions, result: ProofResult) -> Iterator[tuple[str, OfficialClient]]:
    for name, make in CLIENTS.items():
        options.note(f"making {name}")
        try:
            yield name, make()
        except ClientMissingError as missing:
            result.check(name, True, f"not played. {missing}")


def _play(
    profile: str,
    name: str,
    client: OfficialClient,
    servers: Servers,
    options: ProofOptions,
    result: ProofResult,
) -> None:
    for way in ("direct", "through_proxy"):
        title = f"{name}, {way.replace('_', ' ')}, profile {profile}"
        folder = options.out / profile / title.replace(" ", "-").replace(",", "")
        options.note(title)
        _judge(title, run_client(client, getattr(servers, way), folder), result)
        options.note(f"{title}, killed")
        run = run_restart(client, getattr(servers, way), folder, servers.kill_and_start)
        _judge(f"{title}, broker killed beneath it", run, result)


def _play_to_the_real_one(
    clients: dict[str, OfficialClient], options: ProofOptions, result: ProofResult
) -> None:
    """Compare with the results of a real Pulsar, if the environment names it."""
    service_url, web_url = (os.environ.get(name) for name in ENVIRONMENT)
    if not service_url or not web_url:
        return
    proxy_url = os.environ.get(PROXY_ENVIRONMENT)
    for name, client in clients.items():
        for way, url in (("direct", service_url), ("through its proxy", proxy_url)):
            if url:
                title = f"{name}, a real Pulsar, {way}"
                options.note(title)
                folder = options.out / "real" / title.replace(" ", "-").replace(",", "")
                _judge(title, run_client(client, Target(url, web_url), folder), result)


def _judge(title: str, run: ClientRun, result: ProofResult) -> None:
    result.figures["clients"][title] = vars(run)
    what = f"{len(run.same)} scenarios as a real broker"
    if run.absent:
        what += f"; not in this client: {', '.join(run.absent)}"
    lines = [difference.splitlines()[-1] for difference in run.differences]
    result.check(title, not run.differences, f"{title}: {'; '.join(lines) or what}")
