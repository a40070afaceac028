"""A broker or proxy as its user starts it: a process, its ready line, its end.

For end-to-end tests; the process ends with the block. A command ``-m broker`` or ``-m proxy`` is
forked from a process that has imported both: a start of Python would take a second.
"""

import contextlib
import multiprocessing
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
READY_SECONDS = STOP_SECONDS = 60.0
ROLES = ("broker", "proxy")
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [f"{role}.{name}" for role in ROLES for name in ("__main__", "service")]
)


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
    process, output = _started(command, log, cwd)
    with output:
        try:
            line = _first_line(output)
            words = line.split()
            assert words[:1] == ["READY"], f"no ready line but {line!r}: {_tail(log)}"
            yield ServerProcess(pid=process.pid or 0, service_url=words[2], web_url=words[3])
            process.terminate()
            process.join(STOP_SECONDS)
            assert process.exitcode == 0, f"exit {process.exitcode}: {_tail(log)}"
        finally:
            process.kill()
            process.join()


def ended_server(command: Sequence[str], folder: Path) -> tuple[int | None, str, str]:
    """Run a server that must end by itself; return its exit status, output and errors."""
    process, output = _started(command, folder / "errors", REPOSITORY)
    with output:
        process.join(STOP_SECONDS)
        process.kill()
        told = b"".join(iter(lambda: os.read(output.fileno(), 65_536), b"")).decode()
    return process.exitcode, told, (folder / "errors").read_text("utf-8")


def _started(
    command: Sequence[str], log: Path, cwd: Path
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    output, written = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(
        target=_program, args=(list(command), dict(os.environ), cwd, log, written)
    )
    process.start()
    written.close()
    return process, output


def _program(
    command: list[str], environment: Mapping[str, str], cwd: Path, log: Path, written: Connection
) -> None:
    """Be the process of a command."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.dup2(written.fileno(), 1)
    written.close()
    with log.open("wb") as errors:
        os.dup2(errors.fileno(), 2)
    module, words = command[1], command[2:]
    if command[0] != "-m" or module not in ROLES:
        os.execv(sys.executable, [sys.executable, *command])
    sys.stdout, sys.stderr = (os.fdopen(each, "w", buffering=1) for each in (1, 2))
    sys.path.insert(0, str(cwd))
    sys.argv = [module, *words]
    import_module(f"{module}.__main__").main()


def _first_line(output: Connection) -> str:
    deadline = time.monotonic() + READY_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([output], [], [], max(0, deadline - time.monotonic()))
        byte = os.read(output.fileno(), 1) if readable else b""
        if not byte:
            break
        line += byte
    return line.decode()


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]
