"""Healthy clients in a separate process; see benchmarks.controlled_process.

``python -m tests.proof.abuse.healthy_peer BROKER PROXY BROKER_WEB PROXY_WEB TOKEN_FILE`` lists at
broker and proxy, calls the REST API of both, and sends and receives with the official client
through the proxy, each on a schedule. ``{"do": "take"}`` returns the response times since the last
take, measured from the due time. ``{"do": "go_on", "yes": false}`` pauses clients that connect
anew, so that descriptors can be counted.
"""

import asyncio
import logging
import os
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pulsar

from benchmarks.command_lines import answer_commands
from limiter.clock import LoopClock, deadline
from proto.topics_response import read_topics_head
from server.loop import run
from tests.proof.abuse.cluster import more_urgent
from tests.proof.abuse.words import connect, listing

NAMESPACE = "public/healthy"
TOPIC = "persistent://public/healthy-messages/steady"
PERIOD_SECONDS = 0.025
WEB_PERIOD_SECONDS = 0.05
PATIENCE_SECONDS = 10.0
NEWCOMERS = ("connect and list, broker", "connect and list, proxy")
_LENGTH = struct.Struct(">I")


class Times:
    """Seconds and failures by kind since the last take.

    Attributes:
        going_on: Cleared to pause clients that connect anew.
    """

    def __init__(self) -> None:
        self.going_on = asyncio.Event()
        self.going_on.set()
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._failures: dict[str, list[str]] = defaultdict(list)

    def took(self, kind: str, seconds: float) -> None:
        self._seconds[kind].append(seconds)

    def failed(self, kind: str, why: str) -> None:
        self._failures[kind].append(why)

    def take(self) -> dict[str, Any]:
        """Return milliseconds and failures of each kind, and reset them."""
        seconds, self._seconds = self._seconds, defaultdict(list)
        failures, self._failures = self._failures, defaultdict(list)
        return {
            kind: {
                "ms": [round(1_000 * each, 1) for each in seconds[kind]],
                "failures": failures[kind],
            }
            for kind in sorted({*seconds, *failures})
        }


async def on_schedule(
    kind: str, times: Times, period: float, serve: Callable[[], Awaitable[None]]
) -> None:
    """Request on a schedule; response times count from the due time."""
    due = time.monotonic()
    while True:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if kind in NEWCOMERS and not times.going_on.is_set():
            await times.going_on.wait()
            due = time.monotonic()
        try:
            async with deadline(LoopClock(), PATIENCE_SECONDS):
                await serve()
            times.took(kind, time.monotonic() - due)
        except (OSError, EOFError, TimeoutError, aiohttp.ClientError, UnservedError) as error:
            times.failed(kind, f"{type(error).__name__}: {error}")
            await asyncio.sleep(period)
        # Requests that fall due during a long wait count as a single request.
        due = max(due + period, time.monotonic() - period)


class UnservedError(Exception):
    """An answer other than the requested."""


class Lister:
    """Lists over a connection, and reconnects after a loss."""

    def __init__(self, address: str, token: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._size = 0

    async def list(self) -> None:
        """List; the answer must be as long as the first."""
        try:
            await self._listed()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _listed(self) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=1 << 20)
            self._streams[1].write(connect(self._token))
            await self._frame()
        self._streams[1].write(listing(NAMESPACE, 1))
        while read_topics_head(frame := await self._frame()) is None:
            if len(frame) > 40:
                raise UnservedError(repr(frame[:200]))
            self._streams[1].write(_PONG)
        self._size = self._size or len(frame)
        if len(frame) != self._size:
            raise UnservedError(f"a listing of {len(frame)} bytes, and {self._size} before")

    async def _frame(self) -> bytes:
        assert self._streams is not None
        (size,) = _LENGTH.unpack(await self._streams[0].readexactly(_LENGTH.size))
        return await self._streams[0].readexactly(size)


_PONG = b"\x00\x00\x00\x09\x00\x00\x00\x05\x08\x13\x9a\x01\x00"


class Newcomer:
    """Connects anew for each listing."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    async def list(self) -> None:
        lister = Lister(self._address, self._token)
        try:
            await lister.list()
        finally:
            lister.close()


class Messenger(threading.Thread):
    """Sends and receives with the official client through the proxy; blocking, so in a thread."""

    def __init__(self, address: str, token: str, times: Times) -> None:
        super().__init__(daemon=True)
        self._url, self._token, self._times = f"pulsar://{address}", token, times
        self.ready = threading.Event()
        self.ending = threading.Event()

    def run(self) -> None:
        """Send, receive and acknowledge on a schedule."""
        credentials = pulsar.AuthenticationToken(self._token)
        logger = logging.getLogger("pulsar")
        client = pulsar.Client(self._url, credentials, logger=logger)
        consumer = client.subscribe(TOPIC, "steady")
        producer = client.create_producer(TOPIC, batching_enabled=False)
        due = time.monotonic()
        while not self.ending.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                producer.send(b"x" * 100)
                self._times.took("send", time.monotonic() - due)
                message = consumer.receive(timeout_millis=int(PATIENCE_SECONDS * 1_000))
                consumer.acknowledge(message)
                self._times.took("send to receive", time.monotonic() - due)
            except pulsar.PulsarException as error:
                self._times.failed("send to receive", str(error))
            self.ready.set()
            due = max(due + PERIOD_SECONDS, time.monotonic() - PERIOD_SECONDS)
        client.close()


async def main(broker: str, proxy: str, broker_web: str, proxy_web: str, token: str) -> None:
    """Run until the input ends."""
    times = Times()
    messenger = Messenger(proxy, token, times)
    messenger.start()
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        def page(web: str) -> Callable[[], Awaitable[None]]:
            async def ask() -> None:
                url = f"{web}/admin/v2/persistent/public/healthy-messages"
                async with session.get(url) as response:
                    if response.status != 200:
                        raise UnservedError(
                            f"HTTP {response.status}: {await response.text()}"[:200]
                        )
                    await response.read()

            return ask

        loops = [
            asyncio.create_task(on_schedule(kind, times, period, serve))
            for kind, period, serve in (
                ("list, broker", PERIOD_SECONDS, Lister(broker, token).list),
                ("list, proxy", PERIOD_SECONDS, Lister(proxy, token).list),
                (NEWCOMERS[0], WEB_PERIOD_SECONDS, Newcomer(broker, token).list),
                (NEWCOMERS[1], WEB_PERIOD_SECONDS, Newcomer(proxy, token).list),
                ("HTTP, broker", WEB_PERIOD_SECONDS, page(broker_web)),
                ("HTTP, proxy", WEB_PERIOD_SECONDS, page(proxy_web)),
            )
        ]

        async def take() -> dict[str, Any]:
            return times.take()

        async def go_on(yes: bool) -> dict[str, Any]:
            (times.going_on.set if yes else times.going_on.clear)()
            return {}

        try:
            await asyncio.to_thread(messenger.ready.wait, 60)
            await answer_commands({}, {"take": take, "go_on": go_on})
        finally:
            messenger.ending.set()
            for each in loops:
                each.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*loops, return_exceptions=True)


if __name__ == "__main__":
    os.setsid()
    more_urgent(os.getpid())
    first, second, third, fourth, token_file = sys.argv[1:]
    run(main(first, second, third, fourth, Path(token_file).read_text()))
