"""Responses with long JSON arrays of names, written block by block at the client's pace.

A namespace of a million topics is 100 MB of JSON, never held as a whole. A client's listing takes
about 200 KiB of memory: a block and the connection's buffer. A client that reads nothing for half a
minute is disconnected.

Many listings may be in flight; each turn of the event loop writes a block of a listing.

Like upstream, the memory limiter does not account for listings; their number is bounded.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from limiter.clock import deadline
from server.http import JSON_TYPE, RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.topic_lists.sequence import TopicSequence
    from limiter.clock import Clock

MAX_LISTINGS = 256
"""The largest number of listings written concurrently."""
AT_ONCE_BYTES = 65_536
"""Size up to which a listing is written immediately, as a body of known length."""
NAMES_PER_PART = 1_000
"""The number of namespace or tenant names in a part of the body."""
LONG_NAME_BYTES = 100
"""The assumed bytes of a name, which few names exceed; longer names are still written
immediately."""
WRITE_SECONDS = 30.0
"""The seconds after which a client that reads nothing of its response is disconnected."""
_NEEDS_ESCAPE = re.compile(rb'[\x00-\x1f"\\]')


class ListingResponses:
    """Writes long JSON arrays of names to clients, a limited number of arrays at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self.active = 0

    async def respond(
        self,
        request: web.Request,
        sequences: Sequence[TopicSequence],
        keep: Callable[[list[bytes]], list[bytes]] | None = None,
    ) -> web.StreamResponse:
        """Respond with a JSON array of the names in the given sequences.

        Args:
            request: The request.
            sequences: The names, one sequence after another.
            keep: Returns the requested names in a block of names; None selects all.

        Raises:
            RestError: 503, too many listings are in flight.
        """
        most_bytes = sum(sequence.totals.wire_bytes for sequence in sequences)
        return await self.respond_in_parts(request, _kept(sequences, keep), most_bytes)

    async def respond_with_names(
        self, request: web.Request, names: Sequence[object]
    ) -> web.StreamResponse:
        """Respond with a JSON array of the given names, converted to text.

        Raises:
            RestError: 503, too many listings are in flight.
        """
        starts = range(0, len(names), NAMES_PER_PART)
        parts = ([str(name).encode() for name in names[at : at + NAMES_PER_PART]] for at in starts)
        return await self.respond_in_parts(request, parts, len(names) * LONG_NAME_BYTES)

    async def respond_in_parts(
        self, request: web.Request, parts: Iterable[list[bytes]], most_bytes: int
    ) -> web.StreamResponse:
        """Respond with a JSON array of names that are generated part by part.

        Args:
            request: The request.
            parts: Lists of names; each list is generated when it is written.
            most_bytes: Upper bound of the size of all names, in bytes.

        Raises:
            RestError: 503, too many listings are in flight.
        """
        if most_bytes <= AT_ONCE_BYTES:
            written = [json_names(names) for names in parts if names]
            body = b"[" + b",".join(written) + b"]"
            return web.Response(body=body, headers={"Content-Type": JSON_TYPE})
        response = web.StreamResponse(headers={"Content-Type": JSON_TYPE})
        with self._place():
            await response.prepare(request)
            if request.method != "HEAD":
                await self._write(response, request, parts)
        return response

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self.active >= MAX_LISTINGS:
            raise RestError(503, f"{MAX_LISTINGS} listings are being written: ask again later")
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    async def _write(
        self, response: web.StreamResponse, request: web.Request, parts: Iterable[list[bytes]]
    ) -> None:
        separator, remaining = b"[", iter(parts)
        try:
            while (names := await self._next_part(remaining)) is not None:
                if names:
                    await self._send(response, separator + json_names(names))
                    separator = b","
            await self._send(response, b"[]" if separator == b"[" else b"]")
        except BaseException:
            # The response has begun: the reader must not mistake a fragment for the whole.
            if request.transport is not None:
                request.transport.abort()
            raise

    async def _next_part(self, parts: Iterator[list[bytes]]) -> list[bytes] | None:
        """Return the next part of a response, or None at the end.

        Each turn of the event loop returns at most one part. Writing to a fast reader never
        suspends this task, so waiting here lets other tasks run.
        """
        async with self._lock:
            await asyncio.sleep(0)
        return next(parts, None)

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        try:
            async with deadline(self._clock, WRITE_SECONDS):
                await response.write(data)
        except TimeoutError:
            raise ConnectionResetError("a listing was not read") from None


def json_names(names: Sequence[bytes]) -> bytes:
    """Return one or more UTF-8 names as JSON strings separated by commas."""
    if _NEEDS_ESCAPE.search(b"".join(names)):
        texts = [name.decode() for name in names]
        return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))[1:-1].encode()
    return b'"' + b'","'.join(names) + b'"'


def _kept(
    sequences: Sequence[TopicSequence], keep: Callable[[list[bytes]], list[bytes]] | None
) -> Iterator[list[bytes]]:
    """Yield the requested names in the sequences, block by block."""
    for sequence in sequences:
        for block in sequence.blocks():
            names = list(block.names())
            yield names if keep is None else keep(names)
