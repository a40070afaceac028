"""The image in the place of Apache Pulsar's: what Testcontainers' modules run and wait for."""

import os
import socket
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pulsar
import pytest
import yaml

from tests.support.processes.free_port import free_port
from tests.support.processes.image_root import ImageRoot, namespaces_obstacle
from tests.support.processes.server_process import REPOSITORY

FACTS = yaml.safe_load((REPOSITORY / "tests" / "data" / "testcontainers.yaml").read_text())
MODULES = FACTS["modules"]
RECEIVE_MS = 30_000
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(bool(namespaces_obstacle()), reason=namespaces_obstacle()),
]


class Ports:
    """Free ports in the place of a container's own."""

    def __init__(self) -> None:
        self.service, self.web = free_port(), free_port()

    def variables(self, module: Mapping[str, Any]) -> dict[str, str]:
        """Return a module's variables; an engine maps ports instead."""
        return {
            **module.get("environment", {}),
            "PULSAR_PREFIX_brokerServicePort": str(self.service),
            "PULSAR_PREFIX_webServicePort": str(self.web),
            "PULSAR_PREFIX_bindAddress": "127.0.0.1",
        }

    def answer(self) -> bool:
        """Return True if both ports take connections."""
        try:
            for port in (self.service, self.web):
                socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True


def awaited(module: Mapping[str, Any]) -> list[str]:
    return [wait["log"] for wait in module["waits"] if "log" in wait]


def until_logged(output: IO[str], texts: list[str]) -> None:
    """Read until the output has had the ready line and all texts."""
    missing = {"READY", *texts}
    for line in output:
        missing = {text for text in missing if text not in line}
        if not missing:
            return
    raise AssertionError(f"ended without {missing}")


def get(url: str, token: str | None) -> str:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with _OPENER.open(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("module", MODULES, ids=[module["name"] for module in MODULES])
def test_the_image_meets_the_wait_conditions_of_each_module(
    module: dict[str, Any], tmp_path: Path
) -> None:
    root, ports = ImageRoot(tmp_path), Ports()
    variables = ports.variables(module)
    if not any("apply-config" in word for word in module["command"]):  # Ports are the engine's.
        with (tmp_path / "root" / "pulsar" / "conf" / "standalone.conf").open("a") as file:
            for name, value in variables.items():
                file.write(f"{name.removeprefix('PULSAR_PREFIX_')}={value}\n")
    with root.running(module["command"], variables) as output:
        until_logged(output, awaited(module))
        token = root.run(module["token"], variables).strip() if "token" in module else None
        for wait in module["waits"]:
            if "path" in wait:
                answer = get(f"http://127.0.0.1:{ports.web}{wait['path']}", token)
                assert wait.get("body", answer) == answer
        if "afterwards" in module:
            admin = {"FLOODGATE_ADMIN_URL": f"http://127.0.0.1:{ports.web}"}
            root.run(module["afterwards"], {**variables, **admin})
        authentication = token and pulsar.AuthenticationToken(token)
        client = pulsar.Client(f"pulsar://127.0.0.1:{ports.service}", authentication)
        try:
            consumer = client.subscribe("orders", "s")
            client.create_producer("orders").send(b"an order")
            assert consumer.receive(RECEIVE_MS).data() == b"an order"
        finally:
            client.close()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_no_awaited_log_line_is_printed_before_the_ports_answer(gate: Path, tmp_path: Path) -> None:
    root, ports = ImageRoot(tmp_path, gate), Ports()
    module = next(one for one in MODULES if one["name"] == "Rust")
    texts = [text for one in MODULES for text in awaited(one)]
    with root.running(module["command"], ports.variables(module)) as output:
        with gate.open("w") as opened:  # Opens when the broker's program waits.
            assert not ports.answer()
            opened.write("\n")
        for line in output:
            texts = [text for text in texts if text not in line]
            assert ports.answer(), line
            if not texts:
                break
    assert not texts


def test_a_start_with_transactions_enabled_is_refused_immediately(tmp_path: Path) -> None:
    module = MODULES[0]
    variables = {"PULSAR_PREFIX_transactionCoordinatorEnabled": "true"}
    with ImageRoot(tmp_path).running(module["command"], variables) as output:
        assert "READY" not in output.read()
    assert "Floodgate has no transactions" in (tmp_path / "errors.log").read_text()
