"""Each action of a fault beneath the official clients of Python, Java and Go.

A topic for each action and language, published to and consumed during the fault, at the broker and
then at a proxy. No receipted message is missing, except where the client itself drops it; every
call ends; and the application's result is exactly the table's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loadgen.places.server_process import ServerProcess
from tests.proof.faults.actions import CASES, Case
from tests.proof.programs import LANGUAGES, Program, official_command, running_programs
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, check_logs, rest, running_cluster

ON = {"floodgateFaultsEnabled": "true"}
FAULTS = "floodgate/faults"


def prove(options: ProofOptions) -> ProofResult:
    """Run each fault beneath each client; quick: only at the broker."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    with running_cluster(ClusterSettings(options.out, ON, {})) as (broker, proxy):
        for server in (broker,) if options.quick else (broker, proxy):
            play(server, broker.web_url, options, result)
    check_logs(options.out, result)
    return result


def play(
    server: ServerProcess, broker_web_url: str, options: ProofOptions, result: ProofResult
) -> None:
    """Run each fault of a server beneath each client, and judge the applications' results."""
    for language in LANGUAGES:  # a namespace each: topics move with their bundle
        namespace = f"namespaces/public/{language}-{server.module}"
        rest(broker_web_url, "PUT", namespace, {})
    with _running_clients(options.out, server) as clients:
        for name, case in CASES.items():
            if case.at_proxy or server.module == "broker":
                title = f"{name} at the {server.module}"
                options.note(title)
                seen = _seen(clients, server, name, case)
                result.figures[title] = seen
                _judge(title, case, seen, result)


def _judge(name: str, case: Case, seen: dict[str, Any], result: ProofResult) -> None:
    wrong, said = [], []
    for language, one in seen.items():
        errors = list(dict.fromkeys(one["errors"]))
        said.append(f"{language} {', '.join(errors) or 'nothing'}")
        attached = not any(error.startswith("subscribe") for error in errors)
        if not case.is_as_told(language, errors):
            wrong.append(f"{language} is unlike the table")
        if not one["fired"]:
            wrong.append(f"{language} had no fault")
        if attached and one["missing"] != case.missing:
            wrong.append(f"{language} missed {one['missing']} messages")
    result.check(name, not wrong, "; ".join([f"{name}: {', '.join(said)}", *wrong]))


def _seen(
    clients: dict[str, Program], server: ServerProcess, name: str, case: Case
) -> dict[str, Any]:
    """Set the fault for a topic of each language, and return the applications' results."""
    ids = {}
    for language, client in clients.items():
        topic = f"persistent://public/{language}-{server.module}/{name.replace(' ', '-')}"
        document = {**case.document, "where": {"topic": topic}}
        ids[language] = rest(server.web_url, "POST", FAULTS, document)["id"]
        client.say(topic)
    seen = {language: client.line() for language, client in clients.items()}
    fired = {one["id"]: one["fired"] for one in rest(server.web_url, "GET", FAULTS)}
    for language, one in seen.items():
        one["fired"] = fired[ids[language]]
    rest(server.web_url, "DELETE", FAULTS)
    return seen


@contextmanager
def _running_clients(out: Path, server: ServerProcess) -> Iterator[dict[str, Program]]:
    logs = out / f"clients-of-{server.module}"
    where = (str(logs.resolve()), server.service_url)
    commands = {
        language: (
            *official_command(language, "tests.proof.faults.client", "Faulted", "faulted"),
            *where,
        )
        for language in LANGUAGES
    }
    with running_programs(commands, logs) as clients:
        yield clients
