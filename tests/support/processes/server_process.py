"""A broker or proxy as its user starts it: a process, its ready line, its end.

For end-to-end tests; the process ends with the block.
"""

import contextlib
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
READY_SECONDS = STOP_SECONDS = 60.0


@dataclass(frozen=True)
class ServerProcess:
    """A running server.

    Attributes:
        pid: Process id.
        service_url: ``pulsar://host:port`` from the ready line.
        web_url: ``http://host:port`` from the ready line.
    """

    pid: int
    service_url: str
    web_url: str

    @property
    def address(self) -> str:
        """``host:port`` of the binary protocol."""
        return self.service_url.removeprefix("pulsar://")


@contextlib.contextmanager
def running_server(
    command: Sequence[str], log: Path, cwd: Path = REPOSITORY
) -> Iterator[ServerProcess]:
    """Run ``command`` with this Python, from its ready line to the end of the block.

    Args:
        command: Arguments after ``python``, such as ``["-m", "broker", "--set", "..."]``.
        log: File for standard error.
        cwd: Working directory.

    Raises:
        AssertionError: The server ended or kept silent instead of becoming ready, or did not drain.
    """
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=cwd,
            bufsize=0,  # select() sees the pipe, not a buffer's content
        )
    try:
        yield _ready(process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0, f"exit {process.returncode}: {_tail(log)}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _ready(process: subprocess.Popen[bytes], log: Path) -> ServerProcess:
    line = _first_line(process)
    words = line.split()
    assert words[:1] == ["READY"], f"no ready line but {line!r}: {_tail(log)}"
    return ServerProcess(pid=process.pid, service_url=words[2], web_url=words[3])


def _first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    deadline = time.monotonic() + READY_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select(
            [process.stdout], [], [], max(0, deadline - time.monotonic())
        )
        byte = process.stdout.read(1) if readable else b""
        if not byte:
            break
        line += byte
    return line.decode()


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]
