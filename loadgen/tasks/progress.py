"""Shows progress while a run goes on, and tells the tasks when it is to end early.

Workers send their counters once a second in a datagram to the driver on the loopback (Spark
itself reports only when a task ends). A lost datagram costs one second of freshness: each holds
totals, and the results do not depend on them. The same sockets carry the word that ends a run.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from loadgen.clients.records import RequestCounters
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


REPORT_SECONDS = 1.0
_LARGEST_DATAGRAM_BYTES = 4096
_POLL_SECONDS = 0.2
_STOP = b"stop"


class ProgressSender:
    """The workers' end: sends totals; without an address it does nothing."""

    def __init__(self, task: int, address: tuple[str, int] | None) -> None:
        self._task = task
        self._address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = None if address is None else socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if self._socket is not None:
            self._socket.setblocking(False)

    def send(self, counters: RequestCounters) -> None:
        """Send totals; nobody waits for them, so those that cannot be sent now are dropped."""
        if self._socket is None or self._address is None:
            return
        message = json.dumps({"task": self._task, "counters": asdict(counters)}).encode()
        try:
            self._socket.sendto(message, self._address)
        except OSError:
            return  # the driver has left or its buffer is full; the next second brings a new total

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that totals come from; None before the first, or without a driver."""
        return None if self._socket is None else self._socket.getsockname()

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when the driver says so; call this on the task's event loop."""
        if self._socket is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket, self._told, stop)

    def _told(self, stop: Callable[[], None]) -> None:
        assert self._socket is not None
        try:
            message, sender = self._socket.recvfrom(_LARGEST_DATAGRAM_BYTES)
        except OSError:
            return  # nobody listens there any more, or nothing came after all
        if message == _STOP and sender == self._address:
            stop()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            if self._loop is not None:
                self._loop.remove_reader(self._socket)
            self._socket.close()


class ProgressReceiver:
    """The driver's end: a thread that adds up the tasks' totals and tells the observer."""

    def __init__(self, observer: Callable[[RequestCounters], None]) -> None:
        self._observer = observer
        self._senders: set[Any] = set()  # an address for each task
        self._stopping = False
        self._tasks: dict[int, RequestCounters] = {}  # one for each task
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(_POLL_SECONDS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._receive, name="progress", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """The address that workers send to."""
        host, port = self._socket.getsockname()
        return str(host), int(port)

    def stop(self) -> None:
        """Tell every task to end early; those not heard of yet are told when they are."""
        self._stopping = True
        for sender in tuple(self._senders):
            self._say_stop(sender)

    def _say_stop(self, sender: Any) -> None:  # noqa: ANN401 - an address, as the socket has it
        with suppress(OSError):  # said again when it reports again
            self._socket.sendto(_STOP, sender)

    def __enter__(self) -> ProgressReceiver:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        while not self._stopped.is_set():
            try:
                message, sender = self._socket.recvfrom(_LARGEST_DATAGRAM_BYTES)
            except TimeoutError:
                continue
            self._take(message, sender)

    def _take(self, message: bytes, sender: Any) -> None:  # noqa: ANN401
        try:
            content = json.loads(message)
            self._tasks[int(content["task"])] = RequestCounters(**content["counters"])
        except (ValueError, KeyError, TypeError):
            return  # not from our workers: any process of the machine can send here
        self._senders.add(sender)
        if self._stopping:
            self._say_stop(sender)
        total = RequestCounters()
        for counters in self._tasks.values():
            total = total.plus(counters)
        self._observer(total)


def progress_line(counters: RequestCounters, clients: int) -> str:
    """Return one line for a person who waits, of less than 60 columns for 10,000 clients."""
    lost = counters.timeout + counters.disconnected + counters.unreachable
    if not counters.started:
        connected = f"connected {counters.connected:,} of {clients:,}"
        return f"{connected}  lost {lost:,}" if lost else connected
    return (
        f"started {counters.started:,}  answered {counters.answered:,}  "
        f"refused {counters.refused:,}  lost {lost:,}  {format_bytes(counters.bytes)}"
    )


@contextmanager
def progress_display(
    clients: int, stream: TextIO, *, first: str = "connecting", as_json: bool = False
) -> Iterator[Callable[[RequestCounters], None]]:
    """Show totals on ``stream``: a live line on a terminal, else a line whenever they change.

    Args:
        clients: How many will connect.
        stream: Standard error, mostly.
        first: What is done before there are any.
        as_json: Whether lines beside a terminal are JSON objects.
    """
    if stream.isatty():
        console, waiting = Console(file=stream), Spinner("dots", Text(first))
        with Live(waiting, console=console, refresh_per_second=4, transient=True) as live:
            yield lambda now: live.update(Text(progress_line(now, clients), no_wrap=True))
        return
    if not as_json:
        stream.write(f"{first}\n")
    last = RequestCounters()

    def show(now: RequestCounters) -> None:
        nonlocal last
        if now == last:
            return
        last = now
        line = json.dumps({"progress": asdict(now)}) if as_json else progress_line(now, clients)
        stream.write(f"{line}\n")
        stream.flush()

    yield show
