"""``/status.html``: OK for load balancers while clients are served and an operator's file exists.

Removing the file removes the server from the balancer's list, without closing connections.

Source: upstream VipStatus, as recorded. Differs: upstream returns 503 instead of 404 to a repeated
request within a second.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from server.http import ProcessState, RestError

if TYPE_CHECKING:
    from server.http import Readiness

STATUS_PATH = "/status.html"


def status_route(readiness: Readiness, file: str | None) -> web.RouteDef:
    """Return the route.

    Args:
        readiness: The state of the process.
        file: statusFilePath; None or empty for none.
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
