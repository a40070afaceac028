"""The client of all listing benchmarks, which runs in a process of its own.

``python -m benchmarks.listings.client HOST PORT ANSWER_BYTES SECONDS PID...`` keeps CONNECTIONS
connections busy with one request each. It prints as JSON the number of complete answers in SECONDS
and the processor time of each server PID. It reads only length fields, so it is rarely the
bottleneck. Options come first: ``--authority FILE`` for TLS, ``--namespace NAME``,
``--pattern TEXT``; ``{}`` in the pattern is a new number in each request, from ``--first NUMBER``
on.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
import sys
import time
from itertools import count, repeat
from typing import TYPE_CHECKING, cast

from benchmarks.listings.corpus import NAMESPACE, REQUEST_ID
from benchmarks.processor_time import cpu_seconds
from loadgen.engine.frames import connect_frame, list_frame
from server.loop import run

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 16
BUFFER_BYTES = 262_144
WARM_UP_SECONDS = 0.3
_LENGTH = struct.Struct(">I")


class Load:
    """The requests, the size of an answer and the number of answers that connections share."""

    def __init__(self, answer_bytes: int, requests: Iterator[bytes] | None = None) -> None:
        self.requests = requests or listing_requests()
        self.answer_bytes = answer_bytes
        self.answers = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, sentence: str) -> None:
        """End the measurement with an error; only the first reason is reported."""
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(sentence))


class ListingClient(asyncio.BufferedProtocol):
    """A connection that sends a request, waits for the whole answer, and repeats."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._header_bytes = 0
        self._missing_bytes = 0
        self._greeted = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send CONNECT on the new connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(connect_frame())

    def connection_lost(self, exc: Exception | None) -> None:
        """End the measurement with an error, because servers never close in a round."""
        self._load.fail(f"the server closed a connection ({exc})")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer, in which only an incomplete length field is kept."""
        return self._view[self._header_bytes :] if self._header_bytes else self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Count received bytes until the answer is complete."""
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
            self._transport.write(next(self._load.requests))


def listing_requests(
    namespace: str = NAMESPACE, pattern: str | None = None, first: int = 0
) -> Iterator[bytes]:
    """Yield list requests without end, each with a new number where the pattern has ``{}``."""
    if pattern is None or "{}" not in pattern:
        return repeat(list_frame(REQUEST_ID, namespace, pattern))
    patterns = (pattern.replace("{}", str(number)) for number in count(first))
    return (list_frame(REQUEST_ID, namespace, one) for one in patterns)


async def measure(
    address: tuple[str, int],
    load: Load,
    seconds: float,
    pids: list[int],
    tls: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Connect to a server, warm up, and return the number of answers and processor times.

    Raises:
        RuntimeError: The server closed a connection, or an answer had another length.
    """
    loop = asyncio.get_running_loop()
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
    """Let the connections work for some seconds; raise an error as soon as one fails."""
    done, _ = await asyncio.wait([load.failed], timeout=seconds)
    if done:
        load.failed.result()


async def _work(arguments: list[str], options: dict[str, str]) -> dict[str, object]:
    host, port, answer_bytes, seconds, *pids = arguments
    authority = options.get("--authority")
    tls = ssl.create_default_context(cafile=authority) if authority else None
    requests = listing_requests(
        options.get("--namespace", NAMESPACE),
        options.get("--pattern"),
        int(options.get("--first", "0")),
    )
    load = Load(int(answer_bytes), requests)
    return await measure((host, int(port)), load, float(seconds), [*map(int, pids)], tls)


def main() -> None:
    """Measure once, and print the result; if that fails, print a sentence and exit."""
    arguments, options = sys.argv[1:], dict[str, str]()
    while arguments[0].startswith("--"):
        name, value, *arguments = arguments
        options[name] = value
    try:
        result = run(_work(arguments, options))
    except (OSError, RuntimeError) as error:
        sys.exit(f"listing client: {error}")
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
