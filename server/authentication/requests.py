"""HTTP authentication, a step before every handler: who sends a request is known, or it is 401."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiohttp import web

from proto.excerpts import excerpt
from server.authentication.errors import AuthenticationError
from server.authentication.principal import NO_METHOD, Principal
from server.authentication.session import ClientSession
from server.json_answers import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from aiohttp.typedefs import Middleware

    from server.authentication.service import AuthenticationService

logger = logging.getLogger(__name__)

REQUIRED = "Authentication required"
ORIGINAL_HEADER = "X-Original-Principal"
SESSION = web.RequestKey("session", ClientSession)
"""A request's key of its session; missing without authentication, and on an open path."""
METRICS_PATHS = ("/metrics", "/metrics/")
OPEN_PATHS = ("/", "/status.html", "/floodgate", "/floodgate/")
"""Paths that everybody may ask for: they tell who this server is, and that it lives; the page has
nothing in it but what asks for everything else, with the credentials that somebody gives it."""


def session_of_request(request: web.Request) -> ClientSession | None:
    """Return who sends a request; None without authentication, and on an open path."""
    return request.get(SESSION)


def open_paths(*, covers_metrics: bool) -> frozenset[str]:
    """Return the paths without authentication.

    Args:
        covers_metrics: authenticateMetricsEndpoint.
    """
    return frozenset(OPEN_PATHS if covers_metrics else (*OPEN_PATHS, *METRICS_PATHS))


def authentication_middleware(
    service: AuthenticationService, open_to_all: Collection[str]
) -> Middleware:
    """Return the step that lets in only who is known.

    Source: upstream AuthenticationFilter. Differs: the body of a 401 is JSON, and a path that
    nobody serves is refused too.
    """

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.path not in open_to_all:
            await service.prepare_request(request.headers, request.remote or "")
            request[SESSION] = _session(request, service)
        return await handler(request)

    return check


def _session(request: web.Request, service: AuthenticationService) -> ClientSession:
    transport = request.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    try:
        principal = service.authenticate_request(request.headers, certificate)
    except AuthenticationError as error:
        logger.info("refused a request from %s: %s", request.remote, excerpt(error.reason))
        raise RestError(401, REQUIRED) from None
    original = request.headers.get(ORIGINAL_HEADER, "")
    return ClientSession(principal, Principal(original, NO_METHOD) if original.strip() else None)
