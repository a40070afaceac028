"""A standalone cluster of Spark on the loopback: a master and workers, a process each.

Its processes are isolated from this environment: they run in a separate folder, with a PATH and
Java, so that executors have only the submitted files.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from loadgen.places.server_process import stop
from loadgen.spark.java import find_java
from tests.proof.commands import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
READY_SECONDS = 120.0
WORKERS = 2


@dataclass(frozen=True)
class StandaloneCluster:
    """The running cluster.

    Attributes:
        environment: For spark-submit.
    """

    url: str
    web_url: str
    environment: Mapping[str, str]

    def applications(self) -> list[dict[str, Any]]:
        """Return the finished applications, with their slots."""
        found: list[dict[str, Any]] = _state(self.web_url)["completedapps"]
        return found


@contextmanager
def standalone_cluster(out: Path, port: int) -> Iterator[StandaloneCluster]:
    """Run a master on ``port`` and its web port on the next, and workers of a core each.

    Raises:
        ProofError: The cluster did not start.
    """
    out.mkdir(parents=True, exist_ok=True)
    environment = _environment(out)
    url, web_url = f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"
    master = ["master.Master", "--port", str(port), "--webui-port", str(port + 1)]
    worker = ["worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(_process(master, out, environment, "master"))
        for number in range(WORKERS):
            name = f"worker-{number}"
            command = [*worker, "--work-dir", str((out / name).resolve()), url]
            stack.enter_context(_process(command, out, environment, name))
        what = f"the cluster of {out}/*.log"
        wait_until(what, lambda: _has_workers(web_url), READY_SECONDS)
        yield StandaloneCluster(url, web_url, environment)


def _environment(out: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(out.resolve()),
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(find_java(os.environ, out.resolve())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(out.resolve()),
        # A node's plain Python, without any package of the project.
        "LOADGEN_PYTHON": str(sys._base_executable),  # type: ignore[attr-defined]
    }


@contextmanager
def _process(
    words: list[str], out: Path, environment: Mapping[str, str], name: str
) -> Iterator[None]:
    kind, *options = words
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    with (out / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", *options],
            cwd=out,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            stop(process)


def _has_workers(web_url: str) -> bool:
    with suppress(OSError, ValueError):  # not listening yet, or without data
        return bool(_state(web_url)["aliveworkers"] == WORKERS)
    return False


def _state(web_url: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{web_url}/json/", timeout=10) as answer:
        state: dict[str, Any] = json.loads(answer.read())
    return state
