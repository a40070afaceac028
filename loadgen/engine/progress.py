"""Progress while a run goes on: totals on their way from the tasks to the driver, and a word back.

Workers send their counters once a second in a datagram to the driver on the loopback (Spark
itself reports only when a task ends). A lost datagram costs one second of freshness: each holds
totals, and the results do not depend on them. The same sockets carry the word that ends a run.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from loadgen.engine.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT_SECONDS = 1.0
_LARGEST_DATAGRAM_BYTES = 60_000
_LARGEST_TEXT_BYTES = 1_000_000
_POLL_SECONDS = 0.2
_STOP = b"stop"


class _Report(BaseModel):
    """The content of a datagram: a task's totals, and the agreed start once there is one."""

    task: int
    totals: Totals
    t0_epoch_seconds: float | None = None


class ProgressSender:
    """The workers' end: sends totals; without an address ``send`` is a no-op.

    Attributes:
        t0_epoch_seconds: The agreed start, told with all totals from then on.
    """

    def __init__(self, task: int, address: tuple[str, int] | None) -> None:
        self.t0_epoch_seconds: float | None = None
        self._task = task
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None
        if address is not None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.connect(address)  # Nobody else is listened to.

    def send(self, totals: Totals) -> None:
        """Send totals; a datagram that cannot be sent now is dropped."""
        if self._socket is not None:
            told = _Report(task=self._task, totals=totals, t0_epoch_seconds=self.t0_epoch_seconds)
            # The driver has left or its buffer is full; the next second brings a new total.
            with suppress(OSError):
                self._socket.send(zlib.compress(told.model_dump_json().encode()))

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that totals come from; None without a driver."""
        return None if self._socket is None else self._socket.getsockname()

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when the driver says so; call this on the task's event loop."""
        if self._socket is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket, self._told, stop)

    def _told(self, stop: Callable[[], None]) -> None:
        assert self._socket is not None
        with suppress(OSError):  # nobody listens there any more, or nothing came after all
            if self._socket.recv(_LARGEST_DATAGRAM_BYTES) == _STOP:
                stop()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            if self._loop is not None:
                self._loop.remove_reader(self._socket)
            self._socket.close()


class ProgressReceiver:
    """The driver's end: a thread that adds up the tasks' totals and tells the observer.

    Args:
        observer: Told the totals of all tasks.
        on_agreed: Told the agreed start, in seconds of the epoch, with each total from then on.
    """

    def __init__(
        self,
        observer: Callable[[Totals], None],
        on_agreed: Callable[[float], None] = lambda t0_epoch_seconds: None,
    ) -> None:
        self._observer = observer
        self._senders: set[Any] = set()  # an address for each task
        self._stopping = False
        self._on_agreed = on_agreed
        self._tasks: dict[int, Totals] = {}  # one for each task
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
        """Tell every task to end early; a task without a report yet is told after its first."""
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
            with suppress(TimeoutError):
                self._take(*self._socket.recvfrom(_LARGEST_DATAGRAM_BYTES))

    def _take(self, message: bytes, sender: Any) -> None:  # noqa: ANN401
        try:
            text = zlib.decompressobj().decompress(message, _LARGEST_TEXT_BYTES)
            told = _Report.model_validate_json(text)
        except (ValueError, zlib.error):
            return  # not from our workers: any process of the machine can send here
        self._tasks[told.task] = told.totals
        self._senders.add(sender)
        if self._stopping:
            self._say_stop(sender)
        if told.t0_epoch_seconds is not None:
            self._on_agreed(told.t0_epoch_seconds)
        self._observer(sum(self._tasks.values(), Totals()))
