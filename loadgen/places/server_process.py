"""Broker and proxy as child processes: started, awaited until ready, always stopped, restarted.

A server lives inside a ``with`` block. It is stopped when the block ends, however it ends: by an
error, by Ctrl-C, by SIGTERM; and where ``setpriv`` is at hand the kernel stops it even when this
process is killed. Servers run in sessions of their own, so that Ctrl-C in a terminal reaches only
this process, which then stops them in order.
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
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from loadgen.errors import LoadgenError
from server.module_names import module_name, python_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

READY_SECONDS = 60.0
STOP_SECONDS = 10.0
_LOG_LINES_SHOWN = 15
_LONGEST_READY_LINE_BYTES = 4096
# The exit codes of a server whose configuration, or what it should import, cannot be used.
_REFUSED = (1, 2)
_SENTENCES_SHOWN = 30
_PORT_KEYS = {"broker": "brokerServicePort", "proxy": "servicePort"}
_LOG_RECORD = re.compile(r"\d{4}-\d\d-\d\dT\S+Z \[")
_READY_LINE = re.compile(r"^READY (broker|proxy) (pulsar(?:\+ssl)?://\S+) (https?://\S+)")


@dataclass(frozen=True)
class ServerLaunch:
    """The start of a server: a module of this project, its settings, and the place of its log.

    Attributes:
        module: ``broker`` or ``proxy``.
        settings: Configuration keys, each passed as ``--set key=value``.
        arguments: Further arguments.
        log: The file that gets standard error.
    """

    module: str
    settings: Mapping[str, str]
    log: Path
    arguments: Sequence[str] = ()

    def command(self) -> list[str]:
        """Return the command line of the server itself."""
        sets = [
            part for key, value in self.settings.items() for part in ("--set", f"{key}={value}")
        ]
        return [sys.executable, "-m", module_name(self.module), *sets, *self.arguments]


@dataclass(frozen=True)
class ServerProcess:
    """A server that is ready for clients."""

    module: str
    pid: int
    service_url: str
    web_url: str


class ServerStartError(LoadgenError):
    """A server did not come up; it ends with the server's own sentences, or the end of its log."""


@contextmanager
def running_server(
    launch: ServerLaunch, ready_seconds: float = READY_SECONDS
) -> Iterator[ServerProcess]:
    """Start a server, hand it out when it is ready, stop it at the end of the block.

    Raises:
        ServerStartError: It ended, or said nothing, instead of becoming ready.
    """
    with restartable_server(launch, ready_seconds) as running:
        yield running.server


def stop(process: subprocess.Popen[bytes], seconds: float = STOP_SECONDS) -> None:
    """Ask a process to drain and end; kill it when it does not."""
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


@contextmanager
def signals_taken(
    handler: Callable[[int, object], None] | signal.Handlers, *numbers: signal.Signals
) -> Iterator[None]:
    """Let a function take signals within the block; only the main thread can have that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, handled in zip(numbers, before, strict=True):
            signal.signal(number, handled)


def termination_interrupts() -> AbstractContextManager[None]:
    """Within the block SIGTERM and SIGHUP unwind like Ctrl-C, so that every block is left."""
    return signals_taken(_interrupt, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: object) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


def start(launch: ServerLaunch, log: int) -> subprocess.Popen[bytes]:
    """Start a server whose standard error is a file descriptor; the caller stops it.

    Raises:
        ServerStartError: It cannot be started.
    """
    try:
        return subprocess.Popen(
            [*ends_with_this_process(), *launch.command()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **python_path()},
            start_new_session=True,
        )
    except OSError as error:
        raise ServerStartError(f"The {launch.module} cannot be started: {error}.") from error


def ends_with_this_process() -> list[str]:
    """Return the prefix of a command that the kernel ends when this process is killed."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "TERM"] if program else []


def await_ready(
    process: subprocess.Popen[bytes], launch: ServerLaunch, seconds: float
) -> ServerProcess:
    """Wait until a server says that it is ready.

    Raises:
        ServerStartError: It ended, or said nothing, instead of becoming ready.
    """
    line = _first_line(process, seconds)
    found = _READY_LINE.match(line)
    if found is None or found[1] != launch.module:
        raise ServerStartError(_start_error(process, launch, line, seconds))
    return ServerProcess(launch.module, process.pid, found[2], found[3])


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Read the first line of standard output; what there is of it at its end or the deadline."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    deadline = time.perf_counter() + seconds
    line = b""
    while b"\n" not in line and len(line) < _LONGEST_READY_LINE_BYTES:
        left = deadline - time.perf_counter()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        received = os.read(descriptor, _LONGEST_READY_LINE_BYTES)
        if not received:
            break
        line += received
    return line.decode(errors="replace").partition("\n")[0]


def _start_error(
    process: subprocess.Popen[bytes], launch: ServerLaunch, line: str, seconds: float
) -> str:
    """Say how the start went wrong: in the server's own sentences, or with the end of its log."""
    if line:
        what = f"printed {line!r} instead of the line that says it is ready"
    else:
        try:
            status = process.wait(1)
        except subprocess.TimeoutExpired:
            what = f"was not ready after {seconds:g} s"
        else:
            if status in _REFUSED and (sentences := last_sentences(launch.log)):
                return f"The {launch.module} did not start: {sentences}"
            what = f"ended with exit code {status} before it was ready"
    return f"The {launch.module} {what}. The end of its log, {launch.log}:\n{log_tail(launch.log)}"


def last_sentences(path: Path) -> str:
    """Return what a server wrote behind its last log record; empty where that is a trace.

    Source: server.command_line, on what a user gets wrong.
    """
    said: list[str] = []
    for line in _lines_of(path):
        if _LOG_RECORD.match(line):
            said.clear()
        else:
            said.append(line)
    if any(line.startswith("Traceback ") for line in said):
        return ""
    if (left := len(said) - _SENTENCES_SHOWN) > 0:
        said[_SENTENCES_SHOWN:] = [f"and {left} more lines in {path}"]
    return "\n".join(said)


def log_tail(path: Path) -> str:
    """Return the last lines of a log, indented; a note when there is none."""
    return "\n".join(f"    {line}" for line in _lines_of(path)[-_LOG_LINES_SHOWN:] or ["(empty)"])


def _lines_of(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(errors="replace").splitlines()
    return []


class RestartableServer:
    """A running server; mutable state: its process, another one after each restart."""

    def __init__(
        self, launch: ServerLaunch, threads: ThreadPoolExecutor, ready_seconds: float
    ) -> None:
        self._launch = launch
        self._ready_seconds = ready_seconds
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        launch.log.write_bytes(b"")
        self.server = self._threads.submit(self._start).result()

    def restart(self) -> ServerProcess:
        """Kill it, start it on the same ports, and return it once it is ready.

        Raises:
            ServerStartError: It did not come up again.
        """
        ports = {
            _PORT_KEYS[self._launch.module]: str(urlsplit(self.server.service_url).port),
            "webServicePort": str(urlsplit(self.server.web_url).port),
        }
        with self._one_at_a_time:
            self._end(kill=True)
            self._launch = replace(self._launch, settings={**self._launch.settings, **ports})
            # The kernel ends a server with the thread that started it: that outlives the restart.
            self.server = self._threads.submit(self._start).result()
        return self.server

    def stop(self) -> None:
        """Let it drain and end."""
        with self._one_at_a_time:
            self._end(kill=False)

    def kill(self) -> None:
        """End it by SIGKILL."""
        with self._one_at_a_time:
            self._end(kill=True)

    def pause(self) -> None:
        """Let it stand still until :meth:`go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (process := self._process) is not None:
            process.send_signal(number)

    def _end(self, *, kill: bool) -> None:
        # One that stands still would not end.
        self._signal(signal.SIGKILL if kill else signal.SIGCONT)
        process, self._process = self._process, None
        if process is not None:
            stop(process)

    def _start(self) -> ServerProcess:
        with self._launch.log.open("ab") as log:  # behind what a killed one wrote
            self._process = start(self._launch, log.fileno())
        try:
            return await_ready(self._process, self._launch, self._ready_seconds)
        except BaseException:
            self._end(kill=False)
            raise


@contextmanager
def restartable_server(
    launch: ServerLaunch, ready_seconds: float = READY_SECONDS
) -> Iterator[RestartableServer]:
    """Start a server, hand it out when it is ready, stop it at the end of the block.

    Raises:
        ServerStartError: It ended, or said nothing, instead of becoming ready.
    """
    with ThreadPoolExecutor(1, thread_name_prefix=f"start-{launch.module}") as threads:
        server = RestartableServer(launch, threads, ready_seconds)
        try:
            yield server
        finally:
            server.stop()
