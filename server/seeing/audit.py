"""Audit log: one line for each change made over HTTP, with the role that made it.

The line has the structured fields of its request: its id, and its client's address.
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
    """Middleware that logs each successful request whose HTTP method changes something.

    Handlers of a GET that changes something call ``tell_change`` themselves.
    """
    response = await handler(request)
    if response.status < 300 and request.method not in SAFE_METHODS:
        tell_change(request)
    return response


def tell_change(request: web.Request) -> None:
    """Log who made a change and its path, without body and query, which may hold secrets."""
    who = shown_session(session_of_request(request), "somebody, without authentication")
    logger.info("changed by %s: %s %s", who, request.method, shown_path(request.path))
