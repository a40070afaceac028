"""Processes of regex consumers with the official Python client, and their REST statistics."""

from __future__ import annotations

import http.client
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from loadgen.places.server_process import ServerProcess
from tests.official.clients import python_client
from tests.proof.result import ProofError

PROGRAM = Path(__file__).resolve().parents[2] / "official" / "python" / "regex_consumers.py"
NAMESPACE = "public/regex"
TOPICS_EACH = 10
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class CrowdSize:
    consumers: int
    processes: int

    @property
    def topics(self) -> int:
        """Number of topics; each matches one consumer's pattern."""
        return self.consumers * TOPICS_EACH

    def names(self) -> list[str]:
        return [
            f"persistent://{NAMESPACE}/group-{number // TOPICS_EACH:05d}-{number % TOPICS_EACH}"
            for number in range(self.topics)
        ]


@dataclass
class Attached:
    """The result of one start of the crowd.

    Attributes:
        seconds: From the first process's start until the last consumer had all its topics.
        refused: Clients' errors.
        threads, resident_bytes: Of all client processes together.
        attachments: Consumers over all topics, by REST.
    """

    seconds: float = 0.0
    refused: list[str] = field(default_factory=list)
    threads: int = 0
    resident_bytes: int = 0
    attachments: int = 0


class Crowd:
    """The client processes; killed at the end of the block."""

    def __init__(self, size: CrowdSize, service_url: str, logs: Path) -> None:
        self._size, self._service_url, self._logs = size, service_url, logs
        self._python = python_client().command[0]
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        each = self._size.consumers // self._size.processes
        for number in range(self._size.processes):
            log = str(self._logs / f"clients-{number}.log")
            words = (self._service_url, NAMESPACE, str(number * each), str(each), log)
            self._processes.append(
                subprocess.Popen(
                    [self._python, "-B", str(PROGRAM), *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )

    def kill(self) -> None:
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()

    def attached(self) -> Attached:
        """Wait for every process's report.

        Raises:
            ProofError: A process ended.
        """
        found = Attached()
        with ThreadPoolExecutor(len(self._processes)) as threads:
            for said in threads.map(_said, self._processes):
                found.refused += said["refused"]
                found.threads += said["threads"]
                found.resident_bytes += said["resident_bytes"]
        return found


def _said(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ProofError(f"a process of clients ended with {process.wait()}")
    said: dict[str, Any] = json.loads(line)
    return said


def count_attachments(broker: ServerProcess, size: CrowdSize) -> int:
    """Return the number of consumers in the statistics of all topics."""
    address = urlsplit(broker.web_url)
    found = 0
    with ExitStack() as stack:
        connection = http.client.HTTPConnection(address.netloc, timeout=30)
        stack.callback(connection.close)
        for name in size.names():
            path = name.replace("://", "/")
            connection.request("GET", f"/admin/v2/{path}/stats")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == http.client.NOT_FOUND:
                continue  # not loaded: without consumers
            stats = json.loads(body)
            found += sum(len(one["consumers"]) for one in stats["subscriptions"].values())
    return found
