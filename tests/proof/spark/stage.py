"""A cluster of Spark and servers on separate hosts: the stage of `hosts`.

A master, three workers, broker and proxy, and a driver, a host each. The kernel of the driver's
host has too few ports and too short queues for the clients, the clock of one worker's tasks is
ahead, and no host of Spark has the servers' token.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server, stop
from loadgen.spark.java import find_java
from loadgen.spark.packaging import JOB
from loadgen.spark.settings import EVERYWHERE, ON_A_CLUSTER, Setting, as_properties
from tests.proof.commands import LOADGEN, wait_until
from tests.proof.result import ProofError
from tests.proof.spark.cluster import SPARK_HOME
from tests.proof.spark.fast_clock import written_python
from tests.proof.spark.network import Host, network, run_on
from tests.proof.spark.planted import Planted

WORKERS = ("worker-1", "worker-2", "worker-3")
FAST, DOOMED = WORKERS[0], WORKERS[2]
"""The host with the tasks' skewed clock, and the killed host."""
CORES = 4
PORTS, BACKLOG = 400, 16
"""Ports and queue for connections of the driver's host."""
COMMAND_SECONDS = 300.0
TOKENS = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
_MASTER_PORT, _WEB_PORT, _HISTORY_PORT = 7077, 8080, 18_080
_SERVER_SECONDS = 120.0
_READ = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode())"


@dataclass(frozen=True)
class _HostLaunch(ServerLaunch):
    """The start of a server on a host."""

    host: Host | None = None

    def command(self) -> list[str]:
        assert self.host is not None
        return self.host.command(super().command(), _variables(), ROOT)


@dataclass
class Ended:
    """A finished command of loadgen."""

    code: int
    seconds: float
    said: str


@dataclass
class Stage:
    """The hosts and their processes."""

    out: Path
    planted: Planted
    hosts: dict[str, Host]
    stack: ExitStack
    java: Path
    broker: ServerProcess | None = None
    proxy: ServerProcess | None = None

    @property
    def master_url(self) -> str:
        """The address of Spark's master."""
        return f"spark://{self.hosts['master'].address}:{_MASTER_PORT}"

    def start_spark(self) -> None:
        host = self.hosts["master"]
        (self.out / "events").mkdir()
        web = ("--webui-port", str(_WEB_PORT))
        self._daemon(host, "master.Master", "--port", str(_MASTER_PORT), *web)
        for name in WORKERS:
            self.start_worker(name)
        self.await_workers(len(WORKERS))

    def start_worker(self, name: str) -> None:
        """Start a worker, also after a kill of its host."""
        host, folder = self.hosts[name], str((self.out / name).resolve())
        words = ["--cores", str(CORES), "--memory", "3g", "--webui-port", "0", "--work-dir", folder]
        self._daemon(host, "worker.Worker", *words, self.master_url)

    def await_workers(self, count: int) -> None:
        """Wait until the master has so many workers, all without an application."""

        def free() -> bool:
            try:
                state = json.loads(self.page("master", _WEB_PORT, "/json/"))
            except (ProofError, ValueError):
                return False
            idle = state["coresused"] == 0 and not state["activeapps"]
            return bool(state["aliveworkers"] == count and idle)

        wait_until(f"{count} free workers", free, _SERVER_SECONDS)

    def start_servers(self, corpus: Path) -> None:
        """Start broker and proxy, with required tokens."""
        host = self.hosts["servers"]
        both = {
            "webServicePort": "8080",
            "bindAddress": host.address,
            "advertisedAddress": host.address,
            "authenticationEnabled": "true",
            "authenticationProviders": TOKENS,
            "tokenSecretKey": f"file://{self.planted.secret_key}",
            "authenticateMetricsEndpoint": "false",
        }
        of_broker = {
            **both, "brokerServicePort": "6651", "proxyRoles": "gate",
            "metadataStoreUrl": "memory:local",
        }  # fmt: skip
        of_proxy = {
            **both,
            "webServicePort": "8081",
            "servicePort": "6650",
            "brokerServiceURL": f"pulsar://{host.address}:6651",
            "brokerWebServiceURL": f"http://{host.address}:8080",
            "brokerClientAuthenticationPlugin": (
                "org.apache.pulsar.client.impl.auth.AuthenticationToken"
            ),
            "brokerClientAuthenticationParameters": f"file://{self.planted.folder}/gate.jwt",
        }
        words = ["--import", str(corpus)]
        launch = _HostLaunch("broker", of_broker, self.out / "broker.log", words, host)
        self.broker = self.stack.enter_context(running_server(launch, _SERVER_SECONDS))
        launch = _HostLaunch("proxy", of_proxy, self.out / "proxy.log", (), host)
        self.proxy = self.stack.enter_context(running_server(launch, _SERVER_SECONDS))

    def _daemon(self, host: Host, kind: str, *options: str) -> subprocess.Popen[bytes]:
        words = [f"{SPARK_HOME}/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        words += ["--host", host.address, *options] if "history" not in kind else options
        return self._started(host, words, self.out / f"{host.name}-{kind.partition('.')[0]}.log")

    def _started(self, host: Host, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        variables = _spark_variables(host, self.out, self.java)
        with log.open("ab") as file:
            process = subprocess.Popen(
                host.command(words, variables, self.out.resolve()),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self.stack.callback(stop, process)
        return process

    # -- loadgen ----------------------------------------------------------------------------------

    def submit(self, name: str, *words: str, host: str = "driver") -> Submitted:
        """Start a command of loadgen with spark-submit, its output in a file of this name."""
        submit = [f"{SPARK_HOME}/bin/spark-submit", "--master", self.master_url, "--name", name]
        submit += ["--properties-file", str(self._written_settings()), str(self._written_job())]
        token = ["--auth-params", self.planted.where("admin")]
        log = self.out / f"{name}.txt"
        log.unlink(missing_ok=True)
        return Submitted(log, self._started(self.hosts[host], [*submit, *token, *words], log))

    def local(self, name: str, host: str, *words: str) -> Submitted:
        """Start a command of loadgen on a host, without the cluster."""
        log = self.out / f"{name}.txt"
        log.unlink(missing_ok=True)
        command = [*LOADGEN, "--auth-params", self.planted.where("admin")]
        return Submitted(log, self._started(self.hosts[host], [*command, *words], log))

    def target(self) -> list[str]:
        """Return the options of a run that name the servers."""
        assert self.broker is not None
        assert self.proxy is not None
        admin = [f"broker={self.broker.web_url}", f"proxy={self.proxy.web_url}"]
        named = [word for each in admin for word in ("--admin-url", each)]
        return ["--service-url", self.proxy.service_url, "--yes-this-is-my-cluster", *named]

    def _written_job(self) -> Path:
        job = self.out.resolve() / "loadgen_job.py"
        job.write_text(JOB, encoding="utf-8")
        return job

    def _written_settings(self) -> Path:
        own = {
            # Hosts share this machine's files, so that packing is unnecessary.
            "spark.pyspark.python": str(written_python(self.out.resolve() / "python", FAST)),
            "spark.pyspark.driver.python": sys.executable,
            # A load of few tasks begins on all hosts, too.
            "spark.cores.max": str(CORES * len(WORKERS)),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": f"file://{(self.out / 'events').resolve()}",
        }
        settings = tuple(Setting(key, value, "Of the proof.") for key, value in own.items())
        file = self.out.resolve() / "spark-defaults.conf"
        file.write_text(as_properties((*EVERYWHERE, *ON_A_CLUSTER, *settings)), encoding="utf-8")
        return file

    # -- pages ------------------------------------------------------------------------------------

    def page(self, host: str, port: int, path: str) -> str:
        """Return a web page, as read on the host itself.

        Raises:
            ProofError: The page is unavailable.
        """
        url = f"http://{self.hosts[host].address}:{port}{path}"
        command = self.hosts[host].command([sys.executable, "-c", _READ, url], {}, ROOT)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ProofError(f"{url}: {done.stderr.strip()[-200:]}")
        return done.stdout

    def history(self) -> list[str]:
        """Return Spark's pages about all applications, the environment included."""
        self._daemon(self.hosts["master"], "history.HistoryServer")

        def applications() -> list[Any]:
            with suppress(ProofError, ValueError):
                found: list[Any] = json.loads(
                    self.page("master", _HISTORY_PORT, "/api/v1/applications")
                )
                return found
            return []

        wait_until("the history server", applications, _SERVER_SECONDS)
        told = []
        for each in applications():
            for kind in ("environment", "jobs", "stages", "allexecutors"):
                path = f"/api/v1/applications/{each['id']}/{kind}"
                told.append(self.page("master", _HISTORY_PORT, path))
            path = f"/history/{each['id']}/environment/"
            told.append(self.page("master", _HISTORY_PORT, path))
        return told


@dataclass
class Submitted:
    """A running command of loadgen."""

    log: Path
    process: subprocess.Popen[bytes]
    begun: float = field(default_factory=time.monotonic)

    def said(self) -> str:
        """Return its output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def until_said(self, words: str) -> None:
        """Wait for an output.

        Raises:
            ProofError: The command ended before, or timed out.
        """

        def said() -> bool:
            if words in self.said():
                return True
            if self.process.poll() is not None:
                raise ProofError(f"{self.log.name} ended without {words!r}: {self.said()[-400:]}")
            return False

        wait_until(f"{words!r} of {self.log.name}", said, _SERVER_SECONDS)

    def ctrl_c(self) -> None:
        """Press Ctrl-C in its terminal, which signals all processes of its group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self, since: float | None = None) -> Ended:
        """Wait for its end; return its code, and the seconds since a moment."""
        begun = self.begun if since is None else since
        code = self.process.wait(COMMAND_SECONDS)
        return Ended(code, time.monotonic() - begun, self.said())


def _variables() -> dict[str, str]:
    return {"PATH": "/usr/sbin:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}


def _spark_variables(host: Host, out: Path, java: Path) -> dict[str, str]:
    own = out.resolve() / "temporary" / host.name
    own.mkdir(parents=True, exist_ok=True)
    events = f"file://{(out / 'events').resolve()}"
    return {
        **_variables(),
        "HOME": str(own),
        "TMPDIR": str(own),
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_LOCAL_DIRS": str(own),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_HISTORY_OPTS": f"-Dspark.history.fs.logDirectory={events}",
    }


@contextmanager
def running_stage(out: Path, planted: Planted) -> Iterator[Stage]:
    """Make the hosts and start Spark on them, for a block."""
    names = ("driver", "servers", "master", *WORKERS)
    with network(names, out) as hosts, ExitStack() as stack:
        ports = f"net/ipv4/ip_local_port_range=40000 {40_000 + PORTS - 1}"
        for setting in (ports, f"net/core/somaxconn={BACKLOG}"):
            run_on(hosts["driver"], "sysctl", "-qw", setting)
        for name in ("master", *WORKERS):
            run_on(hosts[name], "mount", "-t", "tmpfs", "none", str(planted.folder))
        stage = Stage(out, planted, hosts, stack, find_java(os.environ, out))
        stage.start_spark()
        yield stage
