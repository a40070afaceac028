"""Progress while a run goes on: totals on their way from the tasks to the driver.

Workers send their counters once a second in a datagram to the driver on the loopback (Spark
itself reports only when a task ends). A lost datagram costs one second of freshness: each holds
totals, and the results do not depend on them.
"""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING

from loadgen.clients.records import RequestCounters

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT_SECONDS = 1.0
_LARGEST_DATAGRAM_BYTES = 4096
_POLL_SECONDS = 0.2


class ProgressSender:
    """The workers' end: sends totals; without an address it does nothing."""

    def __init__(self, task: int, address: tuple[str, int] | None) -> None:
        self._task = task
        self._address = address
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

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()


class ProgressReceiver:
    """The driver's end: a thread that adds up the tasks' totals and tells the observer."""

    def __init__(self, observer: Callable[[RequestCounters], None]) -> None:
        self._observer = observer
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
                message = self._socket.recv(_LARGEST_DATAGRAM_BYTES)
            except TimeoutError:
                continue
            self._take(message)

    def _take(self, message: bytes) -> None:
        try:
            content = json.loads(message)
            task, counters = int(content["task"]), RequestCounters.from_json(content["counters"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # not from our workers: any process of the machine can send here
        self._tasks[task] = counters
        total = RequestCounters()
        for counters in self._tasks.values():
            total = total.plus(counters)
        self._observer(total)
