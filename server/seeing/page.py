"""The web page ``/floodgate/`` with live connections and memory, and ``/status.html``.

Load balancers request ``/status.html``. The web page is a single file without dependencies: it
polls this server's REST, every two seconds while visible, and reports an unreachable server.
"""

from __future__ import annotations

import asyncio
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from server.http import ProcessState, RestError

if TYPE_CHECKING:
    from server.http import Readiness

PAGE_PATH = "/floodgate/"
_PAGE = "page.html"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
}


def page_routes(title: str) -> list[web.RouteDef]:
    """Return the routes of the web page ``/floodgate/``, which has the given title."""
    source = resources.files(__package__ or "server.seeing").joinpath(_PAGE)
    page = source.read_text(encoding="utf-8").replace("{{title}}", title)

    async def shown(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html", headers=_HEADERS)

    async def without_slash(_: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": PAGE_PATH})

    return [web.get(PAGE_PATH, shown), web.get(PAGE_PATH.removesuffix("/"), without_slash)]


STATUS_PATH = "/status.html"


def status_route(readiness: Readiness, file: str | None) -> web.RouteDef:
    """Return the route ``/status.html``, for load balancers.

    Removing the file of statusFilePath removes the server from the balancer's list, without closing
    connections.

    Source: upstream VipStatus, as recorded. Differs: upstream returns 503 instead of 404 to a
    repeated request within a second.

    Args:
        readiness: The state of the process.
        file: The value of statusFilePath; None or empty for none.
    """

    async def status(_: web.Request) -> web.Response:
        if not file:
            raise RestError(404, "Not Found: statusFilePath names no file")
        if readiness.state is not ProcessState.READY:
            raise RestError(503, readiness.state.value)
        if not await asyncio.to_thread(Path(file).is_file):
            raise RestError(404, "Not Found: the file of statusFilePath is not there")
        return web.Response(body=b"OK", headers={"Content-Type": "text/plain"})

    return web.get(STATUS_PATH, status)
