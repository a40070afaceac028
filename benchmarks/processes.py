"""Processes of a benchmark: yardsticks and clients; and the addresses of all measured servers."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from loadgen.places.server_process import stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.places.server_process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 600.0


class BenchError(Exception):
    """A benchmark could not be measured; the message is a sentence."""


class MeasuredServer(NamedTuple):
    """A running server, ready for clients, whose process is measured."""

    host: str
    port: int
    pid: int


def address_of(url: str) -> tuple[str, int]:
    """Return the host and the port of a server's URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 0


def measured_server(server: ServerProcess) -> MeasuredServer:
    """Return the address and the process of a broker or proxy."""
    return MeasuredServer(*address_of(server.service_url), server.pid)


@contextmanager
def yardstick(module: str, *arguments: str) -> Iterator[MeasuredServer]:
    """Run a module that prints ``READY name host port``, for the length of a ``with`` block.

    Raises:
        BenchError: The module did not print that line.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        words = process.stdout.readline().decode().split() if process.stdout else []
        if words[:1] != ["READY"]:
            raise BenchError(f"{module} did not start; it said {' '.join(words)!r}")
        yield MeasuredServer(words[2], int(words[3]), process.pid)
    finally:
        stop(process)


def run_json(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module until it ends, and return the JSON object that it prints.

    Raises:
        BenchError: The module failed; the message has its last line.
    """
    return json_of(module, sys.executable, "-m", module, *arguments)


def json_of(name: str, *command: str) -> dict[str, Any]:
    """Run a command until it ends, and return the JSON object that it prints.

    Raises:
        BenchError: The command failed or took too long; the message has its name and last line.
    """
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{name} did not end in {PATIENCE_SECONDS:g} s") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["(nothing)"]
        raise BenchError(f"{name} failed: {last[0]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result
