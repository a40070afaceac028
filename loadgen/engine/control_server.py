"""The driver's end of the control channel: it sets the start and adds up the tasks' totals.

If a task is lost after the start, the remaining tasks end early, because their load is no longer
that of the document. A task is admitted only once, so a load is never offered twice.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from limiter.clock import LoopClock, deadline
from loadgen.engine.control import (
    HELLO_SECONDS,
    LARGEST_LINE_BYTES,
    LEAD_SECONDS,
    TOTALS,
    ControlAddress,
    Start,
    line,
    proof,
)
from loadgen.engine.totals import Totals
from loadgen.errors import LoadgenError
from loadgen.workers import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_SKEW_SECONDS, MOST_DOUBT_SECONDS = 60.0, 0.025
"""Limits of a task's clock: difference from the driver's, and uncertainty of the measurement."""
LAST_SECONDS = 60.0
"""Seconds for the remaining tasks to drain and write rows after a task is lost."""
_READINGS, _TASKS_ASKED_AT_ONCE = 8, 4
_OBSERVED_SECONDS = 0.2
_ENDS = (
    *(OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError),
    asyncio.CancelledError,
)
"""Exceptions that end a connection: broken, timed out, or an invalid message."""
_BACKLOG, _MORE_STRANGERS = 1_024, 16
"""Listen backlog; connections not proven to be tasks, beside one for each task."""


class ControlServer:
    """The driver's end of the control channel: a thread that serves all tasks of a run.

    Bound: a connection for each task. Unidentified connections are as many and a few more; each is
    closed after ten seconds, or when it is the oldest of too many.

    Args:
        tasks: The number of tasks.
        observer: Called from the thread with the sum of all tasks' totals.
        on_agreed: Called once with the agreed start, in seconds of the epoch.

    Attributes:
        agreed: Whether the start of the run is agreed.
    """

    def __init__(
        self,
        tasks: int,
        observer: Callable[[Totals], None],
        on_agreed: Callable[[float], None] = lambda t0_epoch_seconds: None,
    ) -> None:
        self.agreed = False
        self._tasks = tasks
        self._observer = observer
        self._on_agreed = on_agreed
        self._key = secrets.token_hex(32)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._clocks: dict[int, tuple[float, float]] = {}
        self._totals: dict[int, Totals] = {}
        self._facts: dict[int, Any] = {}
        self._ended = [threading.Event() for _ in range(tasks)]
        self._questions = asyncio.Semaphore(_TASKS_ASKED_AT_ONCE)
        self._strangers: dict[asyncio.StreamWriter, None] = {}
        self._stopping = False
        self._carried: dict[str, Any] = {}
        self._observing: asyncio.TimerHandle | None = None

    @contextmanager
    def listening(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        bind: str = "",
        carried: dict[str, Any] | None = None,
    ) -> Iterator[ControlAddress]:
        """Serve tasks within a ``with`` block; yield the address that tasks connect to.

        Args:
            host: The driver's host, as seen from tasks.
            port: The port to listen on; 0: any free port.
            bind: The address to listen on; empty: that of ``host``.
            carried: Values sent to each identified task, such as credentials, which must not be in
                a task's plan because a plan is written to files on the way.

        Raises:
            LoadgenError: The address cannot be used, or the carried values are too large.
        """
        self._carried = carried or {}
        if (size := len(line(welcome=self._carried))) > LARGEST_LINE_BYTES:
            raise LoadgenError(
                f"credentials and trusted certificates have {size:,} bytes, and a task is sent "
                f"at most {LARGEST_LINE_BYTES:,}: name a smaller file of certificates"
            )
        try:
            listener = socket.create_server((bind or host, port), backlog=_BACKLOG)
        except OSError as error:
            where = f"{bind or host}:{port}"
            raise LoadgenError(f"tasks cannot report to {where}: {error.strerror}") from None
        with listener, in_thread("control", self._serve(listener)) as self._loop:
            yield ControlAddress(host=host, port=listener.getsockname()[1], key=self._key)

    def stop(self) -> None:
        """Tell every task to end early, including tasks that connect later."""
        self._stopping = True
        with suppress(RuntimeError):  # The run is over, and the loop is closed.
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._tell_all, {"stop": True})

    def rest(self, error: LoadgenError) -> tuple[list[Any], str]:
        """End the remaining tasks after a failure; return their facts, and words on the lost tasks.

        Args:
            error: The failure that ends the run.

        Raises:
            LoadgenError: The given error, because no load was offered yet or no task is left.
        """
        give_up = time.monotonic() + LAST_SECONDS
        if self.agreed:
            self.stop()
            for each in self._ended:
                each.wait(max(0.0, give_up - time.monotonic()))
        if not self._facts:
            raise error
        lost: dict[str, list[str]] = {}
        for task in sorted(self._writers.keys() - self._facts.keys()):
            host = self._writers[task].get_extra_info("peername")[0]
            lost.setdefault(host, []).append(str(task))
        words = " and ".join(f"{', '.join(each)} on {host}" for host, each in lost.items())
        who = f"lost are tasks {words}, of {self._tasks}" if lost else "the run failed at its end"
        return [self._facts[each] for each in sorted(self._facts)], f"{who}: {error}"

    async def _serve(self, listener: socket.socket) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with suppress(*_ENDS):
                    await self._serve_one(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(serve, sock=listener, limit=LARGEST_LINE_BYTES)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            if self._observing is not None:
                self._observe()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a task's connection until it ends; close it if the peer is no task of the run.

        Raises:
            ValueError: A message is invalid; other errors of ``_ENDS`` also end the connection.
        """
        self._strangers[writer] = None
        if len(self._strangers) > self._tasks + _MORE_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close()
        try:
            async with deadline(LoopClock(), HELLO_SECONDS):
                task = await self._greeted(reader, writer)
            self._strangers.pop(writer, None)
            if task in self._writers:
                writer.write(
                    line(refused=f"task {task} has connected before: a load is offered once")
                )
                return
            self._writers[task] = writer
            writer.write(line(welcome=self._carried))
            if self._stopping:
                writer.write(line(stop=True))
            try:
                await self._hear(task, reader, writer)
            finally:
                self._ended[task].set()
        finally:
            self._strangers.pop(writer, None)

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Authenticate a connection, and return the number of its task.

        Raises:
            ValueError: The peer is not a task of this run.
        """
        nonce = secrets.token_hex(16)
        writer.write(line(nonce=nonce))
        told = json.loads(await reader.readline())
        task: int = told["task"]
        proved = hmac.compare_digest(proof(self._key, nonce, task), told["proof"])
        if not proved or task not in range(self._tasks):
            raise ValueError("a stranger")
        return task

    async def _hear(
        self, task: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Receive a task's messages, and measure its clock once its clients are connected."""
        async for message in reader:
            told = json.loads(message)
            if "totals" in told:
                self._take(task, told["totals"])
            elif "facts" in told:
                self._facts[task] = told["facts"]
            elif task not in self._clocks:
                # One at a time: waiting behind the questions of other tasks would lengthen round
                # trips.
                async with self._questions:
                    self._clocks[task] = await self._clock_of(task, reader, writer)
                self._agree_if_all_are_ready()

    async def _clock_of(
        self, task: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[float, float]:
        """Return the shortest round trip to a task, and its clock's lead, both in seconds."""
        readings = []
        for _ in range(_READINGS):
            asked, began = time.time(), time.monotonic()  # The wall clock may be set in between.
            writer.write(line(clock=asked))
            while "clock" not in (told := json.loads(await reader.readline())):
                self._take(task, told["totals"])
            trip = time.monotonic() - began
            readings.append((trip, told["now"] - asked - trip / 2))
        return min(readings)

    def _take(self, task: int, told: Any) -> None:  # noqa: ANN401 - not checked yet
        with suppress(ValidationError):  # A task of another version of this program.
            self._totals[task] = TOTALS.validate_python(told)
        # Adding up all tasks at each report would cost the square of their number.
        if self._observing is None:
            loop = asyncio.get_running_loop()
            self._observing = loop.call_later(_OBSERVED_SECONDS, self._observe)

    def _observe(self) -> None:
        self._observing = None
        with suppress(OSError):  # The observer is gone.
            self._observer(sum(self._totals.values(), Totals()))

    def _agree_if_all_are_ready(self) -> None:
        if len(self._clocks) < self._tasks:
            return
        for task, (trip, ahead) in self._clocks.items():
            if refused := _refusal(task, trip / 2, ahead):
                self._tell_all({"refused": refused})
                return
        self.agreed = True  # Before the first task is notified: the task may be lost immediately.
        t0 = time.time() + LEAD_SECONDS
        for task, (trip, ahead) in self._clocks.items():
            self._writers[task].write(line(start=Start(t0 + ahead, t0, ahead, trip / 2)))
        self._on_agreed(t0)

    def _tell_all(self, told: dict[str, Any]) -> None:
        for writer in self._writers.values():
            if not writer.is_closing():
                writer.write(line(**told))


def _refusal(task: int, doubt_seconds: float, ahead_seconds: float) -> str:
    """Return the reason why a task's clock is unusable; empty if the clock is usable."""
    if abs(ahead_seconds) > MOST_SKEW_SECONDS:
        way = "ahead of" if ahead_seconds > 0 else "behind"
        return (
            f"the clock of task {task}'s host is {abs(ahead_seconds):.0f} s {way} the driver's: "
            "set it (NTP), and run again"
        )
    if doubt_seconds > MOST_DOUBT_SECONDS:
        return (
            f"a message to task {task} and back took {2000 * doubt_seconds:.0f} ms at best, so its "
            "clients cannot begin with those of the others: use hosts that are nearer, or less busy"
        )
    return ""
