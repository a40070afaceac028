"""A pytest plug-in: a broker, and a proxy before it, for tests of a Pulsar client.

It loads where it is asked for, by a line in the ``conftest.py`` at the top of a project's tests:
``pytest_plugins = ["pulsar_floodgate.pytest_plugin"]``.

``floodgate_broker`` and ``floodgate_proxy`` are empty at the start of each test. The processes
start on first use, and serve all tests of the session (of each worker, under pytest-xdist) on free
ports. ``set_fault`` injects faults into either. The plug-in imports no Floodgate module; servers
run as programs.

``floodgate_broker_settings`` and ``floodgate_proxy_settings`` in pytest's configuration are lines
of ``key=value``, as in broker.conf and proxy.conf; ``floodgate_python`` is Floodgate's interpreter,
if different from the tests' interpreter.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

MODULES = __name__.removesuffix("pytest_plugin")
"""Prefix of the server modules' names."""
FAULTS = "/admin/v2/floodgate/faults"
CLOCK = "/admin/v2/floodgate/clock"
EMPTIED_BY = {"broker": ("POST", "/admin/v2/floodgate/reset"), "proxy": ("DELETE", FAULTS)}
"""A proxy only has its own faults to remove."""
ANSWER_SECONDS, ADVANCE_SECONDS = 10.0, 600.0
STOP_SECONDS = 10.0
_WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""http_proxy does not apply to local servers."""
_PORTS = {
    "broker": ("brokerServicePort=0", "webServicePort=0", "forceDeleteNamespaceAllowed=true"),
    "proxy": ("servicePort=0", "webServicePort=0", "brokerProxyAllowedTargetPorts=*"),
}
_COMMON = (
    *("bindAddress=127.0.0.1", "advertisedAddress=127.0.0.1"),
    "floodgateFaultsEnabled=true",
)


@dataclass(frozen=True)
class FloodgateServer:
    """Running server.

    Attributes:
        service_url: ``pulsar://host:port``.
        web_url: ``http://host:port``, for REST and metrics.
        pid: The process's id.
        moves: The moves of its time.
    """

    service_url: str
    web_url: str
    pid: int
    moves: list[str] = field(default_factory=list)

    def set_fault(self, fault: Mapping[str, object]) -> str:
        """Inject a fault (docs/faults.md) until the next test begins.

        Args:
            fault: As ``{"on": ["SUBSCRIBE"], "when": {"times": 1}, "do": {"action": "drop"}}``.

        Returns:
            The fault's id.

        Raises:
            FloodgateError: The fault is invalid; the sentence says why.
        """
        try:
            return str(json.loads(self.ask("POST", FAULTS, json.dumps(fault).encode()))["id"])
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            raise FloodgateError(f"The fault is refused: {said}") from None

    def faults(self) -> list[dict[str, Any]]:
        """Return the current faults; ``fired`` counts a fault's actions."""
        found: list[dict[str, Any]] = json.loads(self.ask("GET", FAULTS))
        return found

    def wait_for_fault(self, fault: str, hits: int = 1, seconds: float = 10.0) -> None:
        """Wait until a fault has acted so often.

        Raises:
            FloodgateError: It did not in time; the sentence says how often.
        """
        path = f"{FAULTS}/{fault}/wait?hits={hits}&timeoutMs={round(1000 * seconds)}"
        try:
            self.ask("GET", path, seconds=seconds + ANSWER_SECONDS)
        except HTTPError as error:
            raise FloodgateError(error.read().decode(errors="replace")) from None

    def advance(self, time: str) -> None:
        """Move the broker's time ahead by ``90s``, ``5m``, ``1h`` or ``2d``.

        Raises:
            FloodgateError: The time is invalid; the sentence says why.
        """
        self.moves.append(time)
        try:
            self.ask("POST", CLOCK, json.dumps({"advance": time}).encode(), seconds=ADVANCE_SECONDS)
        except HTTPError as error:
            raise FloodgateError(error.read().decode(errors="replace")) from None

    def ask(
        self, method: str, path: str, body: bytes | None = None, seconds: float = ANSWER_SECONDS
    ) -> bytes:
        """Send a request to the web port, and return its answer.

        Raises:
            OSError: No answer in time, or an error (``urllib.error.HTTPError``).
        """
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.web_url + path, body, headers, method=method)
        with _WITHOUT_PROXY.open(request, timeout=seconds) as answer:
            said: bytes = answer.read()
        return said


class FloodgateError(Exception):
    """A server did not start, or refused a test's request; a sentence."""


class KeptServer:
    """Server started on first use, and emptied on later uses."""

    def __init__(
        self, role: str, settings: Sequence[str], folder: Path, python: str = sys.executable
    ) -> None:
        self._role = role
        self._python = python
        self._settings = settings
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._server: FloodgateServer | None = None
        self._began_with: tuple[str, ...] = ()

    def empty(self, *settings: str) -> FloodgateServer:
        """Return the emptied server; a new server after a change of settings.

        Raises:
            FloodgateError: The server did not start.
        """
        server = self._server
        # Time never goes back.
        kept = server is not None and self._began_with == settings and not server.moves
        if server is not None and kept and self._reset():
            return server
        self.stop()
        self._began_with = settings
        self._server = self._started(settings)
        return self._server

    def stop(self) -> None:
        """End the process, if running."""
        process, self._process, self._server = self._process, None, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _reset(self) -> bool:
        """Empty the server and return True; on False the caller starts a new server."""
        assert self._server is not None
        try:
            self._server.ask(*EMPTIED_BY[self._role])
        except OSError:  # any refusal, including HTTPError
            return False
        return True

    def _started(self, settings: Sequence[str]) -> FloodgateServer:
        log = self._folder / f"{self._role}.log"
        keys = (*_PORTS[self._role], *_COMMON, *settings, *self._settings)
        words = [f"--set={each}" for each in keys]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*_ends_with_this_process(), self._python, "-m", MODULES + self._role, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self._folder,
            )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().split()
        if ready[:1] != ["READY"]:
            self.stop()
            said = log.read_text(encoding="utf-8", errors="replace")[-1000:].strip()
            raise FloodgateError(f"The {self._role} did not start: {said}")
        return FloodgateServer(ready[2], ready[3], self._process.pid)


def _ends_with_this_process() -> list[str]:
    """Return a command prefix that makes the kernel end the server when this process is killed."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "TERM"] if program else []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the servers to pytest's configuration."""
    parser.addini("floodgate_python", "the interpreter that has Floodgate", default=sys.executable)
    for role in _PORTS:
        parser.addini(
            f"floodgate_{role}_settings",
            f"key=value of {role}.conf, a line each, for the fixture floodgate_{role}",
            "linelist",
        )


def _kept(
    role: str, config: pytest.Config, factory: pytest.TempPathFactory
) -> Iterator[KeptServer]:
    folder = factory.mktemp(f"floodgate-{role}")
    settings = config.getini(f"floodgate_{role}_settings")
    python = str(config.rootpath / config.getini("floodgate_python"))
    server = KeptServer(role, settings, folder, python)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _floodgate_broker_kept(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptServer]:
    yield from _kept("broker", pytestconfig, tmp_path_factory)


@pytest.fixture(scope="session")
def _floodgate_proxy_kept(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptServer]:
    yield from _kept("proxy", pytestconfig, tmp_path_factory)


@pytest.fixture
def floodgate_broker(_floodgate_broker_kept: KeptServer) -> FloodgateServer:
    """Provide an empty broker."""
    return _floodgate_broker_kept.empty()


@pytest.fixture
def floodgate_proxy(
    _floodgate_proxy_kept: KeptServer, floodgate_broker: FloodgateServer
) -> FloodgateServer:
    """Provide a proxy before ``floodgate_broker``."""
    return _floodgate_proxy_kept.empty(
        f"brokerServiceURL={floodgate_broker.service_url}",
        f"brokerWebServiceURL={floodgate_broker.web_url}",
    )
