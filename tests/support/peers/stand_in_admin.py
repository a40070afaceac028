"""An admin REST with scripted answers and a record of requests."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from aiohttp import web

JSON_TYPE = "application/json"


@dataclass(frozen=True)
class Asked:
    """A received request.

    Attributes:
        line: Method and path with query, percent-encoded.
        body: Raw bytes.
        media_type: Of the body.
        authorization: The credentials.
    """

    line: str
    body: str
    media_type: str
    authorization: str = ""


@dataclass(frozen=True)
class Given:
    """A scripted answer.

    Attributes:
        parts: The body, sent part by part; a None part blocks the rest for ever.
        breaks: Whether the connection ends before the answer does.
    """

    parts: tuple[bytes | None, ...] = ()
    status: int = 200
    media_type: str = JSON_TYPE
    location: str = ""
    breaks: bool = False


def given(value: object, status: int = 200) -> Given:
    """Return an answer of JSON."""
    return Given((json.dumps(value).encode(),), status)


def refused(status: int, reason: str) -> Given:
    """Return a refusal in Pulsar's words."""
    return given({"reason": reason}, status)


DONE = Given(status=204)


@dataclass
class StandInAdmin:
    """The server: answers by method and path; other requests get a 404 page.

    Attributes:
        url: Its address.
        answers: By ``METHOD /path?query``.
        asked: The received requests.
    """

    url: str = ""
    answers: dict[str, Given] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        line = f"{request.method} {request.raw_path}"
        kind = request.headers.get("Content-Type", "")
        shown = request.headers.get("Authorization", "")
        self.asked.append(Asked(line, await request.text(), kind, shown))
        answer = self.answers.get(line)
        if answer is None:
            return web.Response(status=404, text="<html>Not Found</html>", content_type="text/html")
        headers = {"Content-Type": answer.media_type}
        if answer.location:
            headers["Location"] = answer.location
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        await send(response, answer.parts)
        if answer.breaks:
            assert request.transport is not None
            request.transport.abort()
        return response


async def send(response: web.StreamResponse, parts: Iterable[bytes | None]) -> None:
    for part in parts:
        if part is None:
            await asyncio.Event().wait()
        else:
            await response.write(part)


@contextlib.asynccontextmanager
async def stand_in_admin(
    tls: ssl.SSLContext | None = None, **answers: Given
) -> AsyncIterator[StandInAdmin]:
    """Run a server on a free loopback port; with TLS if a context is given."""
    stand_in = StandInAdmin(answers=dict(answers))
    server = web.Server(stand_in.handle, handler_cancellation=True)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    stand_in.url = f"http{'s' if tls else ''}://{host}:{port}"
    try:
        yield stand_in
    finally:
        await runner.cleanup()
