"""Starting, restarting and stopping of the broker and proxy as child processes.

A server lives inside a ``with`` block, and always stops at the block's end: after success, an
error, Ctrl-C or SIGTERM. With ``setpriv`` the kernel stops the server even if the parent process is
killed. Servers run in separate sessions, so that Ctrl-C in a terminal reaches only the parent
process; the parent then stops the servers in order.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from loadgen.errors import LoadgenError
from loadgen.workers import signals_taken
from server.module_names import module_name, python_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

READY_SECONDS = 60.0
STOP_SECONDS = 10.0
_LOG_LINES_SHOWN = 15
_LONGEST_READY_LINE_BYTES = 4096
# The exit codes of a server with an unusable configuration or import.
_REFUSED = (1, 2)
_SENTENCES_SHOWN = 30
_PORT_KEYS = {"broker": "brokerServicePort", "proxy": "servicePort"}
_LOG_RECORD = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z \[.*\n?", re.MULTILINE)
_READY_LINE = re.compile(r"^READY (broker|proxy) (pulsar(?:\+ssl)?://\S+) (https?://\S+)")


@dataclass(frozen=True)
class ServerLaunch:
    """The parts of a server's command: module, settings, arguments and log file.

    Attributes:
        module: ``broker`` or ``proxy``.
        settings: Configuration keys, each passed as ``--set key=value``.
        arguments: Further arguments of the command line.
        log: The file for the server's standard error.
    """

    module: str
    settings: Mapping[str, str]
    log: Path
    arguments: Sequence[str] = ()

    def command(self) -> list[str]:
        """Return the command line for starting the server."""
        sets = [
            part for key, value in self.settings.items() for part in ("--set", f"{key}={value}")
        ]
        return [sys.executable, "-m", module_name(self.module), *sets, *self.arguments]


@dataclass(frozen=True)
class ServerProcess:
    """A running server, ready for clients."""

    module: str
    pid: int
    service_url: str
    web_url: str


class ServerStartError(LoadgenError):
    """A broker or proxy process did not start.

    The message has the sentences printed by the server, or the end of the server's log.
    """


@contextmanager
def running_server(
    launch: ServerLaunch, ready_seconds: float = READY_SECONDS
) -> Iterator[ServerProcess]:
    """Start a server for a ``with`` block; yield it once it is ready, and stop it at the end.

    Raises:
        ServerStartError: The server ended, or timed out, before it was ready.
    """
    with restartable_server(launch, ready_seconds) as running:
        yield running.server


def stop(process: subprocess.Popen[bytes], seconds: float = STOP_SECONDS) -> None:
    """Terminate a process, which may finish its work first; kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.poll() is None:  # interrupted while waiting
            process.kill()
        if process.stdout is not None:
            process.stdout.close()


def termination_interrupts() -> AbstractContextManager[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt within a ``with`` block.

    Thus every ``with`` block is left properly.
    """
    return signals_taken(_interrupt, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def start(launch: ServerLaunch, log: int) -> subprocess.Popen[bytes]:
    """Start a server process; the caller has to stop it.

    ``log`` is the file descriptor for the server's standard error.
    """
    # The kernel ends the server when this process is killed.
    setpriv = shutil.which("setpriv")
    dies_with_us = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
    return subprocess.Popen(
        [*dies_with_us, *launch.command()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, **python_path()},
        start_new_session=True,
    )


def await_ready(
    process: subprocess.Popen[bytes], launch: ServerLaunch, seconds: float
) -> ServerProcess:
    """Wait for a server's line about being ready, and parse the addresses in the line.

    Raises:
        ServerStartError: The server ended, or timed out, before it was ready.
    """
    assert process.stdout is not None
    says = select.select([process.stdout], [], [], seconds)[0]
    # The server writes the line in one piece.
    said = os.read(process.stdout.fileno(), _LONGEST_READY_LINE_BYTES) if says else b""
    line = said.decode(errors="replace").strip().partition("\n")[0]
    found = _READY_LINE.match(line)
    if found is None or found[1] != launch.module:
        raise ServerStartError(_start_error(process, launch, line, seconds))
    return ServerProcess(launch.module, process.pid, found[2], found[3])


def _start_error(
    process: subprocess.Popen[bytes], launch: ServerLaunch, line: str, seconds: float
) -> str:
    """Return the reason why a server did not start: the server's sentences, or the log's end."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(0 if line else 1)
    status = process.returncode
    if line:
        what = f"printed {line!r} instead of the line that says it is ready"
    elif status is None:
        what = f"was not ready after {seconds:g} s"
    elif status in _REFUSED and (said := _last_sentences(launch.log)):
        if (left := len(said) - _SENTENCES_SHOWN) > 0:
            said[_SENTENCES_SHOWN:] = [f"and {left} more lines in {launch.log}"]
        return "\n".join([f"The {launch.module} did not start: {said[0]}", *said[1:]])
    else:
        what = f"ended with exit code {status} before it was ready"
    return f"The {launch.module} {what}. The end of its log, {launch.log}:\n{log_tail(launch.log)}"


def log_tail(path: Path) -> str:
    """Return the last lines of a log, indented; ``(empty)`` for an empty log."""
    lines = path.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
    return "\n".join(f"    {line}" for line in lines or ["(empty)"])


def _last_sentences(path: Path) -> list[str]:
    """Return the lines after the last record in a log; empty for a stack trace.

    The server prints such lines on usage errors (server.command_line).
    """
    said = _LOG_RECORD.split(path.read_text(errors="replace"))[-1].splitlines()
    return [] if any(line.startswith("Traceback ") for line in said) else said


class RestartableServer:
    """A server process with restarts on the same ports.

    Mutable state: the server process, replaced by a restart.

    Attributes:
        server: Process id and addresses of the server, once ready.
    """

    server: ServerProcess

    def __init__(self, launch: ServerLaunch, ready_seconds: float) -> None:
        self._launch = launch
        self._ready_seconds = ready_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"start-{launch.module}")
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.RLock()
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        launch.log.write_bytes(b"")

    def start(self) -> None:
        """Start the server process, and return once the server is ready.

        Raises:
            ServerStartError: The server did not become ready.
        """
        # The kernel ends a server with the thread that started it, so the thread has to live on.
        self._thread.submit(self._start).result()

    def restart(self, away: Callable[[], object] = lambda: None) -> None:
        """Kill the server, start a new process on the same ports, and return once it is ready.

        Args:
            away: Called after the kill; returns when the new process is to be started.

        Raises:
            ServerStartError: The server did not become ready again.
        """
        ports = {
            _PORT_KEYS[self._launch.module]: str(urlsplit(self.server.service_url).port),
            "webServicePort": str(urlsplit(self.server.web_url).port),
        }
        with self._one_at_a_time:
            self.kill()
            away()
            self._launch = replace(self._launch, settings={**self._launch.settings, **ports})
            self.start()

    def stop(self) -> None:
        """Terminate the server, which may finish its work first."""
        self._end(signal.SIGCONT)  # A paused process would not end.

    def close(self) -> None:
        """Stop the server for good: no restart is possible afterwards."""
        self.stop()
        self._thread.shutdown()
        self.stop()  # An interrupted start has a process by now.

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Suspend the server with SIGSTOP until :meth:`go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue a suspended server with SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (process := self._process) is not None:
            process.send_signal(number)

    def _end(self, first: signal.Signals) -> None:
        with self._one_at_a_time:
            self._signal(first)
            process, self._process = self._process, None
            if process is not None:
                stop(process)

    def _start(self) -> None:
        try:
            with self._launch.log.open("ab") as log:  # appends to a killed process's log
                self._process = process = start(self._launch, log.fileno())
        except OSError as error:
            said = f"The {self._launch.module} cannot be started: {error}"
            raise ServerStartError(said) from None
        self.server = await_ready(process, self._launch, self._ready_seconds)


@contextmanager
def restartable_server(
    launch: ServerLaunch, ready_seconds: float = READY_SECONDS
) -> Iterator[RestartableServer]:
    """Start a server for a ``with`` block; yield it once it is ready, and stop it at the end.

    Raises:
        ServerStartError: The server ended, or timed out, before it was ready.
    """
    with closing(RestartableServer(launch, ready_seconds)) as server:
        server.start()
        yield server
