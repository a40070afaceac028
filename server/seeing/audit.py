"""One line of the log for every change that was made over HTTP: who made it, and which.

The line has the fields of its request beside it: its id, and its client's address.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiohttp import web

from server.authentication.refused import shown_session
from server.authentication.requests import session_of_request
from server.cross_site import SAFE_METHODS
from server.logs import shown_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


@web.middleware
async def audited(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Tell of a request that changed something, by its method; of a GET its handler tells."""
    response = await handler(request)
    if response.status < 300 and request.method not in SAFE_METHODS:
        tell_change(request)
    return response


def tell_change(request: web.Request) -> None:
    """Tell of a change that was made; body and query are not told: they may be credentials."""
    who = shown_session(session_of_request(request), "somebody, without authentication")
    logger.info("changed by %s: %s %s", who, request.method, shown_path(request.path))
