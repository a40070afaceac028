"""Each action of a fault beneath the official clients of Python, Java and Go.

A topic for each action and language, published to and consumed during the fault, at the broker and
then at a proxy. No receipted message is missing, except where the client itself drops it; every
call ends; and the application's result is exactly the table's.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from loadgen.places.server_process import ServerProcess
from tests.official.clients import ClientMissingError, go_client, java_client
from tests.proof.faults.actions import CASES, LANGUAGES, Case
from tests.proof.faults.asking import ON, rest
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, check_logs, running_cluster

CLIENT = "tests.proof.faults.client"
Clients = dict[str, subprocess.Popen[str]]


def prove(options: ProofOptions) -> ProofResult:
    """Run each fault beneath each client; quick: only at the broker."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    with running_cluster(ClusterSettings(options.out, ON, {})) as (broker, proxy):
        for language in LANGUAGES:  # a namespace each: topics move with their bundle
            rest(broker, "PUT", {}, f"namespaces/public/{language}")
        for server in (broker,) if options.quick else (broker, proxy):
            with _running_clients(options.out, server) as clients:
                for name, case in CASES.items():
                    if case.at_proxy or server is broker:
                        options.note(f"{name} at the {server.module}")
                        seen = _seen(clients, server, name, case)
                        result.figures[f"{name} at the {server.module}"] = seen
                        _judge(f"{name} at the {server.module}", case, seen, result)
    check_logs(options.out, result)
    return result


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


def _seen(clients: Clients, server: ServerProcess, name: str, case: Case) -> dict[str, Any]:
    """Set the fault for a topic of each language, and return the applications' results."""
    ids = {}
    for language in clients:
        topic = f"persistent://public/{language}/{name.replace(' ', '-')}-{server.module}"
        document = {**case.document, "where": {"topic": topic}}
        ids[language] = rest(server, "POST", document)["id"]
        _say(clients[language], topic)
    seen = {language: _line(language, process) for language, process in clients.items()}
    fired = {one["id"]: one["fired"] for one in rest(server, "GET")}
    for language, one in seen.items():
        one["fired"] = fired[ids[language]]
    rest(server, "DELETE")
    return seen


# -- the clients ----------------------------------------------------------------------------------


def official_command(language: str, python: str, java: str, go: str) -> Sequence[str]:
    """Return the command of an official client's program: a module, a class, a folder's name.

    Raises:
        ProofError: The program is not available.
    """
    try:
        if language == "java":
            return (*java_client().command[:-1], java)
        if language == "go":
            return (str(Path(go_client().command[0]).with_name(go)),)
    except ClientMissingError as error:
        raise ProofError(str(error)) from None
    return (sys.executable, "-m", python)


@contextmanager
def _running_clients(out: Path, server: ServerProcess) -> Iterator[Clients]:
    logs = out / f"clients-of-{server.module}"
    logs.mkdir(exist_ok=True)
    with ExitStack() as stack:
        clients: Clients = {}
        for language in LANGUAGES:
            command = official_command(language, CLIENT, "Faulted", "faulted")
            log = stack.enter_context((logs / f"{language}.err").open("wb"))
            clients[language] = subprocess.Popen(
                [*command, str(logs.resolve()), server.service_url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
            stack.callback(clients[language].wait)
            stack.callback(clients[language].kill)
        yield clients


def _say(process: subprocess.Popen[str], topic: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{topic}\n")
    process.stdin.flush()


def _line(language: str, process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ProofError(f"the {language} client ended; see {language}.err")
    found: dict[str, Any] = json.loads(line)
    return found
