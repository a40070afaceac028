"""Middleware that authenticates and authorizes HTTP requests; the answer to a refusal is 401."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiohttp import web

from proto.excerpts import excerpt
from server.authentication.peers import is_superuser
from server.authentication.providers import NO_METHOD, AuthenticationError, Principal
from server.authentication.refused import Subject
from server.authentication.session import ClientSession
from server.http import READY_PATH
from server.json_answers import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from aiohttp.typedefs import Handler, Middleware

    from server.authentication.refused import RefusedOperations
    from server.authentication.service import AuthenticationService
    from server.configuration.authorization import AuthorizationSettings

logger = logging.getLogger(__name__)

REQUIRED = "Authentication required"
ORIGINAL_HEADER = "X-Original-Principal"
SESSION = web.RequestKey("session", ClientSession)
"""The key of the session in a request; missing without authentication, and on an open path."""
METRICS_PATHS = ("/metrics", "/metrics/")
OPEN_PATHS = ("/", "/status.html", "/floodgate", "/floodgate/")
"""Paths open to all: they reveal the server's identity and liveness only; the page requests all
of its data separately, with the credentials entered by its user."""


def session_of_request(request: web.Request) -> ClientSession | None:
    """Return the authenticated session of a request.

    None if authentication is off, or if the path is open to all.
    """
    return request.get(SESSION)


def open_paths(*, covers_metrics: bool) -> frozenset[str]:
    """Return the paths that can be requested without credentials.

    Args:
        covers_metrics: True if /metrics requires credentials (authenticateMetricsEndpoint).
    """
    return frozenset(OPEN_PATHS if covers_metrics else (*OPEN_PATHS, *METRICS_PATHS))


def authentication_middleware(
    service: AuthenticationService, open_to_all: Collection[str]
) -> Middleware:
    """Return middleware that authenticates each request, except for paths open to all.

    Source: upstream AuthenticationFilter. Differs: the body of a 401 is JSON, and an unknown path
    is refused too.
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


SUPERUSER_NEEDED = "This operation requires super-user access"
_PAGE = ("/floodgate", "/floodgate/")
FOR_ALL_WHO_ARE_KNOWN = frozenset(
    {*OPEN_PATHS, *METRICS_PATHS, *_PAGE, READY_PATH, "/openapi.json"}
)
"""Paths that need no role, as recorded of a real broker or because they contain no secret: the
page is empty without its data requests. Authentication applies separately."""


def superusers_only(
    settings: Callable[[], AuthorizationSettings],
    dispatches: Collection[Handler],
    refused: RefusedOperations,
) -> Middleware:
    """Return middleware that lets only superusers use routes beyond Pulsar's own REST API.

    Own routes are outside of Pulsar's REST: the limiter's figures, faults, connections,
    imports. Routes added later are closed by default. Requests for Pulsar's REST are authorized
    where they are dispatched: by the broker's endpoints, and through a proxy by its broker.

    Args:
        settings: Returns the effective settings.
        dispatches: Handlers that check authorization themselves.
        refused: Counts refusals.
    """

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        found = request.match_info
        resource = found.route.resource
        # Without a resource no route matches the path and method.
        if (
            resource is not None
            and found.handler not in dispatches
            and resource.canonical not in FOR_ALL_WHO_ARE_KNOWN
        ):
            session = session_of_request(request)
            if session is None:
                raise RestError(401, REQUIRED)
            if not is_superuser(session, settings()):
                refused.add(session, Subject.ROUTE, request.method, request.path)
                raise RestError(401, SUPERUSER_NEEDED)
        return await handler(request)

    return check
