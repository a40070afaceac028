"""The control channel between a run's tasks and the driver, the process that started them.

It carries the agreed start of the run, totals, the request to end early, and each task's final
facts.

Each task opens a TCP connection to the driver, wherever the task runs; messages are JSON, one
object per line. A task identifies itself with a secret of the run, from the task's plan. Before the
start the driver reads each task's clock several times: the answer with the shortest round trip
gives the clock's offset, so that all tasks begin simultaneously whatever their clocks show. Tasks
send totals once a second; the results of the run do not depend on totals. A task ends with a
message of facts: without facts the driver counts the task as lost.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter

from limiter.clock import LoopClock, clock_sleep, deadline
from loadgen.engine.totals import Totals
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT_SECONDS = 1.0
LEAD_SECONDS = 0.5
"""From the last "ready" to the start: enough for the message to reach every task."""
HELLO_SECONDS = 10.0
_AGAIN_SECONDS = 0.5
TOTALS = TypeAdapter(Totals)
LARGEST_LINE_BYTES, _MOST_UNSENT_BYTES = 1 << 20, 1 << 16


class ControlAddress(BaseModel):
    """The address at which a task reaches the driver.

    Attributes:
        key: The secret of the run.
    """

    host: str
    port: int
    key: str = Field(repr=False)


class Start(NamedTuple):
    """The start of the run, as agreed between the driver and its tasks.

    Attributes:
        own_epoch_seconds: The start on the task's wall clock, in seconds of the epoch.
        epoch_seconds: The start on the driver's wall clock.
        ahead_seconds: How far the task's clock is ahead of the driver's, with an uncertainty of
            ``doubt_seconds``.
    """

    own_epoch_seconds: float
    epoch_seconds: float
    ahead_seconds: float = 0.0
    doubt_seconds: float = 0.0


class Control:
    """A stand-in for the control channel, for a task that has no driver.

    The task starts when it is ready, and never ends early.

    Args:
        on_start: Called with the moment of the start, in seconds of the epoch.
        lead_seconds: Seconds from the call of :meth:`start` to the run's start.
    """

    def __init__(
        self,
        on_start: Callable[[float], None] = lambda t0: None,
        lead_seconds: float = LEAD_SECONDS,
    ) -> None:
        self._on_start = on_start
        self._lead_seconds = lead_seconds

    def listen(self, stop: Callable[[], None]) -> None:
        """Ignore ``stop``, which a driver's request to end early would call."""

    async def start(self, wall: Callable[[], float]) -> Start:
        """Return a start ``lead_seconds`` from now; a :class:`ControlClient` waits for the driver.

        Args:
            wall: Reads the task's wall clock.

        Raises:
            LoadgenError: With a driver: it is gone, or refuses the task's clock.
        """
        t0 = wall() + self._lead_seconds
        self._on_start(t0)
        return Start(t0, t0)

    def report(self, totals: Totals) -> None:
        """Ignore the task's totals, which a :class:`ControlClient` sends to the driver."""


def line(**told: Any) -> bytes:  # noqa: ANN401 - what JSON has
    """Encode a message of the control channel as a line of JSON."""
    return json.dumps(told).encode() + b"\n"


def proof(key: str, nonce: str, task: int) -> str:
    """Return an HMAC with which a task proves to the driver that it has the run's secret."""
    return hmac.digest(key.encode(), f"{nonce} {task}".encode(), "sha256").hex()


class ControlClient(Control):
    """A task's end of the control channel: a TCP connection to the driver.

    Mutable state: the connection, and the messages that the driver has sent.

    Create it within the task's event loop. :meth:`connect` must be called before other methods.
    """

    _reader: asyncio.StreamReader

    def __init__(self, task: int, address: ControlAddress) -> None:
        super().__init__()
        self._task = task
        self._address = address
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._started: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self._wall: Callable[[], float] = time.time

    async def connect(self) -> dict[str, Any]:
        """Connect to the driver and authenticate with the run's secret.

        Returns the values that the driver sends, such as credentials.

        Raises:
            LoadgenError: The driver cannot be reached, or refuses the task.
        """
        host, port, error = self._address.host, self._address.port, "no answer"
        with suppress(TimeoutError):
            async with deadline(LoopClock(), HELLO_SECONDS):
                while True:
                    try:
                        return await self._greet(host, port)
                    except (OSError, ValueError, KeyError, TypeError) as failed:
                        error = str(failed) or error
                    await clock_sleep(LoopClock(), _AGAIN_SECONDS)
        raise LoadgenError(
            f"task {self._task} on {socket.gethostname()} cannot reach the driver at "
            f"{host}:{port} ({error}): spark.driver.host names an address that executors reach, "
            "spark.loadgen.control.port a port that is open for them"
        )

    async def _greet(self, host: str, port: int) -> dict[str, Any]:
        """Authenticate with the run's secret, and return the values that the driver sends."""
        if self._writer is not None:
            self._writer.close()
        self._reader, self._writer = await asyncio.open_connection(
            host, port, limit=LARGEST_LINE_BYTES
        )
        if not (greeting := await self._reader.readline()):
            raise OSError("it closes the connection")
        nonce = json.loads(greeting)["nonce"]
        self._send(task=self._task, proof=proof(self._address.key, nonce, self._task))
        # From here on the driver may know the task, and admits a task only once: no retry.
        try:
            told = json.loads(await self._reader.readline())
        except (OSError, ValueError):
            raise LoadgenError(
                f"the driver at {host}:{port} does not admit task {self._task}: it has another "
                "run, or the connection broke"
            ) from None
        if "refused" in told:
            raise LoadgenError(told["refused"])
        return dict(told["welcome"])

    def _send(self, **told: Any) -> None:  # noqa: ANN401 - what JSON has
        assert self._writer is not None
        if not self._writer.is_closing():  # uvloop raises RuntimeError otherwise.
            self._writer.write(line(**told))

    def listen(self, stop: Callable[[], None]) -> None:
        """Receive the driver's messages, and call ``stop`` when the driver ends the run early."""
        self._listening = asyncio.get_running_loop().create_task(self._listen(stop))

    async def _listen(self, stop: Callable[[], None]) -> None:
        why = "the driver is gone"
        with suppress(OSError, ValueError):
            async for message in self._reader:
                told = json.loads(message)
                if "clock" in told:
                    self._send(clock=told["clock"], now=self._wall())
                elif "start" in told:
                    self._started.set_result(Start(*told["start"]))
                elif "stop" in told:
                    stop()
                elif "refused" in told:
                    why = told["refused"]
                    break
        if not self._started.done():
            self._started.set_exception(LoadgenError(why))

    async def start(self, wall: Callable[[], float]) -> Start:
        """Report that all clients are connected, and wait for the run's agreed start."""
        self._wall = wall
        self._send(ready=True)
        return await self._started

    def report(self, totals: Totals) -> None:
        """Send the task's totals to the driver, or drop them if too many bytes are unsent."""
        assert self._writer is not None
        if self._writer.transport.get_write_buffer_size() <= _MOST_UNSENT_BYTES:
            self._send(totals=TOTALS.dump_python(totals, mode="json"))

    def end(self, facts: dict[str, Any]) -> None:
        """Send the task's final facts to the driver, after all rows are written."""
        self._send(facts=facts)

    async def close(self) -> None:
        """Close the connection to the driver."""
        if self._started.done():
            self._started.exception()  # Marks the exception as retrieved.
        if self._listening is not None:
            self._listening.cancel()
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with deadline(LoopClock(), HELLO_SECONDS):
                    await self._writer.wait_closed()
