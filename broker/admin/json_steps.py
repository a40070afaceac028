"""Encoding and sending of large JSON responses in steps of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from server.http import JSON_TYPE, json_bytes
from server.tasks.cooperative import in_parts, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


PIECE_BYTES = 256 * 1024


def json_pieces(value: object, levels: int) -> Generator[None, None, list[bytes]]:
    """Encode a value as JSON like ``json_bytes``, but yield between its parts.

    Args:
        value: A JSON-serializable value.
        levels: The number of outer levels whose members are encoded in separate steps. A deeper
            value is encoded in one step or, if it is a long list, in several.

    Returns:
        Pieces of about PIECE_BYTES each.
    """
    pieces: list[bytes] = []
    written: list[bytes] = []
    size = 0

    def put(part: bytes) -> None:
        nonlocal size
        written.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            end()

    def end() -> None:
        nonlocal size
        pieces.append(b"".join(written))
        written.clear()
        size = 0

    yield from _write(value, levels, put)
    end()
    return pieces


async def json_answer(request: web.Request, pieces: list[bytes]) -> web.StreamResponse:
    """Respond with encoded JSON, sending several pieces one after another."""
    if len(pieces) == 1:
        return web.Response(body=pieces[0], headers={"Content-Type": JSON_TYPE})
    response = web.StreamResponse(headers={"Content-Type": JSON_TYPE})
    response.content_length = sum(map(len, pieces))
    await response.prepare(request)
    if request.method != hdrs.METH_HEAD:
        async for piece in in_turns(pieces):
            await response.write(piece)
    return response


def _write(value: object, levels: int, put: Callable[[bytes], None]) -> Generator[None, None, None]:
    if levels and isinstance(value, list):
        put(b"[")
        for at, item in enumerate(value):
            put(b"," if at else b"")
            yield from _write(item, levels - 1, put)
        put(b"]")
    elif levels and isinstance(value, dict):
        yield from _write_members(value, levels, put)
    elif isinstance(value, list):
        for at, some in enumerate(in_parts(value)):
            put((b"," if at else b"[") + json_bytes(some)[1:-1])
            yield
        put(b"]" if value else b"[]")
    else:
        put(json_bytes(value))
        yield


def _write_members(
    members: dict[str, object], levels: int, put: Callable[[bytes], None]
) -> Generator[None, None, None]:
    """Encode a JSON object: small members together, each large member in several steps."""
    small: dict[str, object] = {}
    separator = b"{"
    for name, value in members.items():
        if not value or not isinstance(value, (dict, list)):
            small[name] = value
            continue
        if small:
            put(separator + json_bytes(small)[1:-1])
            small, separator = {}, b","
        put(separator + json_bytes(name) + b":")
        separator = b","
        yield from _write(value, levels - 1, put)
    rest = json_bytes(small)[1:-1]
    put(b"%b%b}" % (separator if rest or separator == b"{" else b"", rest))
    yield
