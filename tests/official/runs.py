"""Runs a client's driver against servers and compares the results with the expectation."""

import json
import os
import signal
import subprocess
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.official.clients import OfficialClient
from tests.official.expected import EXPECTED, RESTART

PATIENCE_SECONDS = 180.0
_KEY_BITS = 2048
_SHOWN_CHARACTERS = 1_500


@dataclass(frozen=True)
class Target:
    """Servers under test."""

    service_url: str
    admin_url: str


@dataclass
class ClientRun:
    """Outcome of a driver: differences as sentences, and unsupported scenarios."""

    differences: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)


def run_client(
    client: OfficialClient, target: Target, folder: Path, names: Sequence[str] = ()
) -> ClientRun:
    """Run scenarios in a new namespace; without names all but the restart."""
    process = _start(client, target, folder, names)
    try:
        said, errors = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        said, errors = process.communicate()
    errors += _ending(process)
    wanted = {name: EXPECTED[name] for name in names or EXPECTED}
    return _compared(client, wanted, said.splitlines(), errors)


def run_restart(
    client: OfficialClient, target: Target, folder: Path, kill_and_start: Callable[[], None]
) -> ClientRun:
    """Run the scenario in which the broker is killed and restarted under the client."""
    process = _start(client, target, folder, ["restart"])
    assert process.stdout is not None
    first = process.stdout.readline()
    if '"at"' not in first:
        process.kill()
        _, errors = process.communicate()
        return _compared(client, {"restart": RESTART}, [first], errors)
    kill_and_start()
    try:
        said, errors = process.communicate("\n", timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        said, errors = process.communicate()
    errors += _ending(process)
    return _compared(client, {"restart": RESTART}, said.splitlines(), errors)


def _ending(process: subprocess.Popen[str]) -> str:
    """Describe a driver's abnormal exit; a client's native core exits by a signal."""
    code = process.returncode
    if not code:
        return ""
    if code > 0:
        return f" (exit code {code})"
    return f" (ended by {signal.Signals(-code).name})"


def _start(
    client: OfficialClient, target: Target, folder: Path, names: Sequence[str]
) -> subprocess.Popen[str]:
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _write_keys(folder)
    namespace = f"public/official-{uuid.uuid4().hex[:8]}"
    _put(f"{target.admin_url}/admin/v2/namespaces/{namespace}")
    arguments = [target.service_url, target.admin_url, namespace, str(folder), *names]
    return subprocess.Popen(
        [*client.command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


def _write_keys(folder: Path) -> None:
    """Write a key pair for the scenario of encrypted messages."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # Go's only readable format
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "private.pem").write_bytes(private)
    (folder / "public.pem").write_bytes(public)


def _put(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {"Content-Type": "application/json"}
    with opener.open(urllib.request.Request(url, b"{}", headers, method="PUT"), timeout=30):
        pass


def _compared(
    client: OfficialClient, wanted: dict[str, dict[str, Any]], lines: list[str], errors: str
) -> ClientRun:
    run = ClientRun()
    seen = {line["scenario"]: line for line in map(_line, lines) if line}
    for name, common in wanted.items():
        result = {**common, **client.own.get(name, {})}
        said = seen.get(name, {"absent": "not there"} if name in client.absent else {})
        if said.get("result") == result:
            run.same.append(name)
        elif "absent" in said and name in client.absent:
            run.absent.append(name)
        else:
            run.differences.append(f"{client.name}, {name}: {_difference(said, result)}")
    told = f"{client.name} said: {errors[-_SHOWN_CHARACTERS:]}"
    if run.differences and not seen:
        run.differences = [told]
    elif run.differences and errors:
        run.differences.append(told)
    return run


def _difference(said: dict[str, Any], result: dict[str, Any]) -> str:
    if not said:
        return "no word of it"
    if "result" not in said:
        return str(said.get("trace") or said.get("absent") or said.get("error"))
    got = said["result"]
    return ", ".join(
        f"{key} was {got.get(key)!r} instead of {value!r}"
        for key, value in result.items()
        if got.get(key) != value
    )


def _line(line: str) -> dict[str, Any]:
    """Return a driver's line; empty for the client library's own output."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "scenario" in found else {}
