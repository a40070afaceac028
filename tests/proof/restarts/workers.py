"""kill -9 of a worker of a load, of processes and of Spark, and the load's leftovers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.processes import ROOT
from loadgen.places.server_process import ServerProcess
from tests.proof.result import ProofError
from tests.proof.servers import samples

CLIENTS = 20
TASKS = 2
RUN = "killed"
SAYS_SECONDS = 120.0
"""Deadline of a load's end after any kill."""
WORKER_SOON_SECONDS = 15.0
"""Deadline of a load's end after a worker's kill, including Spark's shutdown."""
ASKING_SECONDS = 3.0
"""The time between the last connection and the requests of all clients."""
LOOKUP_SECONDS = 40.0
"""Duration of an unaffected load: longer than any of these times."""


class WorkerPoint(NamedTuple):
    name: str
    place: str
    asks: bool


WORKER_POINTS = (
    WorkerPoint("a worker while it connects", "processes", False),
    WorkerPoint("a worker while its clients ask", "processes", True),
    WorkerPoint("a Spark worker while its clients ask", "spark", True),
)
_IS_WORKER = {"processes": b"multiprocessing.spawn", "spark": b"pyspark.daemon"}


def killed_worker(out: Path, proxy: ServerProcess, point: WorkerPoint) -> dict[str, Any]:
    """Kill one of two workers of a load; return the load's output and leftovers."""
    runs, temporary = (out / name for name in ("runs", "temporary"))
    for folder in (runs, temporary):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    words = ["lookups", "--service-url", proxy.service_url, "--set", "topics.of=[public/default]"]
    words += ["--place", point.place, "--tasks", str(TASKS)]
    words += ["--set", f"clients.all.count={CLIENTS}", "--set", "clients.all.every=1s"]
    words += ["--set", f"phases.measure={LOOKUP_SECONDS}"]
    words += ["--out", str(runs.resolve()), "--name", RUN]
    mark = f"TMPDIR={temporary.resolve()}".encode()
    with subprocess.Popen(
        [sys.executable, "-m", "loadgen", "run", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary.resolve())},
        start_new_session=True,
    ) as load:
        try:
            victim = _until(lambda: _last_worker(mark, point.place), load)
            if point.asks:
                _until(lambda: _connections(proxy) >= CLIENTS, load)
                time.sleep(ASKING_SECONDS)
                victim = _until(lambda: _last_worker(mark, point.place), load)
            os.kill(victim, signal.SIGKILL)
            begun = time.monotonic()
            _, said = load.communicate(timeout=SAYS_SECONDS)
        finally:
            load.kill()
    return {
        "point": point.name,
        "asks": point.asks,
        "run": RUN,
        "status": load.returncode,
        "seconds": time.monotonic() - begun,
        "said": " ".join(line for line in said.splitlines() if line.strip()),
        "left": sorted(path.name for path in (*runs.iterdir(), *temporary.iterdir())),
        "processes_left": [command.decode() for _, command in _processes(mark)],
    }


def _connections(proxy: ServerProcess) -> float:
    return samples(proxy)["pulsar_proxy_active_connections"]


def _last_worker(mark: bytes, place: str) -> int:
    """Return the process id of the last worker, once all run; 0 before."""
    wanted = _IS_WORKER[place]
    found = sorted(pid for pid, command in _processes(mark) if wanted in command)
    # Spark's workers are forked from a process with the same command line.
    return found[-1] if len(found) == TASKS + (place == "spark") else 0


def _processes(mark: bytes) -> list[tuple[int, bytes]]:
    """Return the processes with a mark in their environment, each with its command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append((int(folder.name), command))
    return found


def _until(condition: Callable[[], int], load: subprocess.Popen[str]) -> int:
    give_up = time.monotonic() + SAYS_SECONDS
    while time.monotonic() < give_up and load.poll() is None:
        if found := condition():
            return found
        time.sleep(0.02)
    raise ProofError("the load started no workers")
