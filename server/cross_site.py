"""Refuses changes that a web page of another site has a browser ask for.

There is no authentication, and a browser reaches this server's loopback whatever page it shows.
What it sends for a page says so: in ``Origin``, in ``Sec-Fetch-Site``, or by a media type that only
forms have. Programs (curl, pulsar-admin) send none of these.

Differs: upstream asks for none of it; its media types are the endpoints' own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from proto.excerpts import quoted
from server.configuration.addresses import is_address
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""Body types that a form, or a script that does not ask first (CORS), may send to another site."""


class CrossSiteRule:
    """Decides whether a request may change something.

    Args:
        own_hosts: Names of this server, beside localhost and every IP address. A page of any other
            name is refused also where that name leads here (DNS rebinding).
        forms: Whether a program may send a form's media types; in profile pulsar the endpoints
            decide, as recorded.
    """

    def __init__(self, *own_hosts: str, forms: bool) -> None:
        self._own_hosts = frozenset({"localhost", *map(str.lower, own_hosts)})
        self._forms = forms

    def check(self, request: web.BaseRequest) -> None:
        """Refuse a change that another site's page asks for.

        Raises:
            RestError: 403 for such a page, 415 for a form's media type.
        """
        site = request.headers.get("Sec-Fetch-Site", "none").lower()
        origin = request.headers.get("Origin")
        if site not in ("same-origin", "none"):
            raise _refused(f"Sec-Fetch-Site: {quoted(site)}")
        # Not request.host: without the header that asks the system's resolver, and waits for it.
        if origin is not None and not self._is_own(origin, request.headers.get("Host", "")):
            raise _refused(f"Origin: {quoted(origin)}")
        if not self._forms and request.content_type in FORM_TYPES:
            raise RestError(
                415,
                f"{request.content_type} is what a web form sends, and may not change anything: "
                "send Content-Type: application/json",
            )

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            url = urlsplit(origin.lower())
        except ValueError:
            return False
        if url.scheme not in ("http", "https") or url.netloc != host.lower():
            return False
        return url.hostname in self._own_hosts or is_address(url.hostname or "")

    def middleware(self) -> Middleware:
        """Return the rule as a step before every handler."""

        @web.middleware
        async def check(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            request[_RULE] = self
            if request.method not in SAFE_METHODS:
                self.check(request)
            return await handler(request)

        return check


_RULE = web.RequestKey("cross_site_rule", CrossSiteRule)


def check_change(request: web.Request) -> None:
    """Refuse, before a GET changes something, one that another site's page asks for.

    Raises:
        RestError: 403 for such a page, 415 for a form's media type.
    """
    request[_RULE].check(request)


def _refused(sign: str) -> RestError:
    return RestError(403, f"{sign}: a web page of another site may not change anything here")
