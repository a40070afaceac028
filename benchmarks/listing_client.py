"""The client of all listing rounds, in a process of its own.

``python -m benchmarks.listing_client HOST PORT ANSWER_BYTES SECONDS PID...`` keeps CONNECTIONS
connections busy with one request each, and prints as JSON how many answers were complete in
SECONDS and how much processor time each server PID used meanwhile. It looks at nothing but the
length field, so that it is seldom what limits. With ``--authority FILE`` before all that it speaks
TLS.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
import sys
import time
from typing import cast

from benchmarks.listing_corpus import NAMESPACE, REQUEST_ID
from benchmarks.processor_time import cpu_seconds
from loadgen.storm_frames import connect_frame, request_frame
from server.loop import run

CONNECTIONS = 16
BUFFER_BYTES = 262_144
WARM_UP_SECONDS = 0.3
_LENGTH = struct.Struct(">I")


class Load:
    """What all connections have in common: the request, the expectation and the count."""

    def __init__(self, answer_bytes: int) -> None:
        self.request = request_frame(NAMESPACE, None, REQUEST_ID)
        self.answer_bytes = answer_bytes
        self.answers = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, sentence: str) -> None:
        """End the measurement; the first reason counts."""
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(sentence))


class ListingClient(asyncio.BufferedProtocol):
    """One connection: asks, waits until the announced bytes are in, asks again."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._header_bytes = 0
        self._missing_bytes = 0
        self._greeted = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(connect_frame())

    def connection_lost(self, exc: Exception | None) -> None:
        """Servers never close in a round."""
        self._load.fail(f"the server closed a connection ({exc})")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Read over what was read before, except over an incomplete length field."""
        return self._view[self._header_bytes :] if self._header_bytes else self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Count down to the end of the answer."""
        if self._missing_bytes:
            self._missing_bytes -= nbytes
        else:
            self._header_bytes += nbytes
            if self._header_bytes < _LENGTH.size:
                return
            (size,) = _LENGTH.unpack_from(self._buffer)
            self._missing_bytes = size + _LENGTH.size - self._header_bytes
            self._header_bytes = 0
            if self._greeted and size + _LENGTH.size != self._load.answer_bytes:
                self._load.fail(f"an answer of {size + _LENGTH.size} bytes, not a listing's")
        if self._missing_bytes == 0:
            self._complete()
        elif self._missing_bytes < 0:
            self._load.fail("more bytes came than were announced")

    def _complete(self) -> None:
        if self._greeted:
            self._load.answers += 1
        self._greeted = True
        if self._transport is not None:
            self._transport.write(self._load.request)


async def measure(
    address: tuple[str, int],
    answer_bytes: int,
    seconds: float,
    pids: list[int],
    tls: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Connect, warm up, measure.

    Raises:
        RuntimeError: A connection ended, or an answer had another length.
    """
    loop = asyncio.get_running_loop()
    load = Load(answer_bytes)
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: ListingClient(load), *address, ssl=tls)
    await _run_on(load, WARM_UP_SECONDS)
    answers, started = load.answers, time.perf_counter()
    used, own = [cpu_seconds(pid) for pid in pids], time.process_time()
    await _run_on(load, seconds)
    wall_seconds = time.perf_counter() - started
    return {
        "answers": load.answers - answers,
        "seconds": wall_seconds,
        "cpu_seconds": [cpu_seconds(pid) - before for pid, before in zip(pids, used, strict=True)],
        "client_cpu_seconds": time.process_time() - own,
    }


async def _run_on(load: Load, seconds: float) -> None:
    """Let the connections work; a failure ends it at once."""
    done, _ = await asyncio.wait([load.failed], timeout=seconds)
    if done:
        load.failed.result()


def main() -> None:
    """Measure once and print the result; a failure is one sentence."""
    arguments, tls = sys.argv[1:], None
    if arguments[0] == "--authority":
        _, authority, *arguments = arguments
        tls = ssl.create_default_context(cafile=authority)
    host, port, answer_bytes, seconds, *pids = arguments
    work = measure((host, int(port)), int(answer_bytes), float(seconds), [*map(int, pids)], tls)
    try:
        result = run(work)
    except (OSError, RuntimeError) as error:
        sys.exit(f"listing client: {error}")
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
