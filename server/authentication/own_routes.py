"""HTTP authorization of a server's own routes: superusers only, unless a path is listed here.

Own routes are outside of Pulsar's REST: the limiter's figures, faults, connections, imports. Routes
added later are closed by default. Requests for Pulsar's REST are authorized where they are
dispatched: by the broker's endpoints, and through a proxy by its broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from server.authentication.peers import is_superuser
from server.authentication.refused import Subject
from server.authentication.requests import METRICS_PATHS, OPEN_PATHS, REQUIRED, session_of_request
from server.http import READY_PATH, RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from aiohttp.typedefs import Handler, Middleware

    from server.authentication.refused import RefusedOperations
    from server.configuration.authorization import AuthorizationSettings

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
    """Return the middleware that restricts a server's own routes to superusers.

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
