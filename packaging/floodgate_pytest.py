"""A pytest plug-in: a broker, and a proxy before it, for tests of a Pulsar client.

``floodgate_broker`` and ``floodgate_proxy`` are empty for each test. The processes start when a
test first asks for them, and serve all tests of their session (of each worker, under pytest-xdist)
on ports of their own. Nothing of Floodgate is imported here: they are run as programs.

``floodgate_broker_settings`` and ``floodgate_proxy_settings`` in pytest's configuration are lines
of ``key=value``, as of broker.conf and proxy.conf.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MODULES = "floodgate."
"""In front of the names of the modules that are run."""
RESET = "/admin/v2/floodgate/reset"
STOP_SECONDS = 10.0
_PORTS = {
    "broker": ("brokerServicePort=0", "webServicePort=0", "forceDeleteNamespaceAllowed=true"),
    "proxy": ("servicePort=0", "webServicePort=0", "brokerProxyAllowedTargetPorts=*"),
}
_LOOPBACK = ("bindAddress=127.0.0.1", "advertisedAddress=127.0.0.1")


@dataclass(frozen=True)
class FloodgateServer:
    """A running server.

    Attributes:
        service_url: ``pulsar://host:port``.
        web_url: ``http://host:port``, for REST and metrics.
        pid: The process's id.
    """

    service_url: str
    web_url: str
    pid: int


class FloodgateError(Exception):
    """A server did not start; the sentence holds the end of its log."""


class KeptServer:
    """A server that starts when it is first asked for, and is emptied when asked for again."""

    def __init__(self, role: str, settings: Sequence[str], folder: Path) -> None:
        self._role = role
        self._settings = settings
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._server: FloodgateServer | None = None
        self._began_with: tuple[str, ...] = ()

    def empty(self, *settings: str) -> FloodgateServer:
        """Return the server without anything in it; a new one if these settings are new.

        Raises:
            FloodgateError: It did not start.
        """
        if self._server is not None and self._began_with == settings and self._reset():
            return self._server
        self.stop()
        self._began_with = settings
        self._server = self._started(settings)
        return self._server

    def stop(self) -> None:
        """End the process, if there is one."""
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
        """Ask for a reset; tell whether it was done. A server that cannot is started again."""
        assert self._server is not None
        request = urllib.request.Request(self._server.web_url + RESET, b"", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=STOP_SECONDS):
                return True
        except OSError:  # any refusal: an HTTPError is one too
            return False

    def _started(self, settings: Sequence[str]) -> FloodgateServer:
        log = self._folder / f"{self._role}.log"
        words = [f"--set={each}" for each in (*self._words(), *settings, *self._settings)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*_ends_with_this_process(), sys.executable, "-m", MODULES + self._role, *words],
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

    def _words(self) -> tuple[str, ...]:
        return (*_PORTS[self._role], *_LOOPBACK)


def _ends_with_this_process() -> list[str]:
    """Return the prefix of a command that the kernel ends when this process is killed."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "TERM"] if program else []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the servers to pytest's configuration."""
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
    server = KeptServer(role, config.getini(f"floodgate_{role}_settings"), folder)
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
    """Have a broker with nothing in it."""
    return _floodgate_broker_kept.empty()


@pytest.fixture
def floodgate_proxy(
    _floodgate_proxy_kept: KeptServer, floodgate_broker: FloodgateServer
) -> FloodgateServer:
    """Have a proxy before ``floodgate_broker``."""
    return _floodgate_proxy_kept.empty(
        f"brokerServiceURL={floodgate_broker.service_url}",
        f"brokerWebServiceURL={floodgate_broker.web_url}",
    )
