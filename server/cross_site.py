"""Protection of a server from requests that other sites' web pages make a browser send.

A page of any site can make a browser send requests to this server's loopback address. Such a
request is marked by ``Origin``, by ``Sec-Fetch-Site``, or by a media type that only forms use.
Programs (curl, pulsar-admin) send none of these. A page whose own name resolves to this server (DNS
rebinding) counts as same-origin for its browser, and can read responses: its name is in ``Host``.

Differs: upstream has no such checks; media types are checked per endpoint.
"""

from __future__ import annotations

import socket
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
"""Body types that a form, or a script without a CORS preflight, may send to another site."""


class CrossSiteRule:
    """Refuses changes requested by another site's web page, and requests for other hosts.

    Args:
        own_hosts: Names of this server, besides localhost and every IP address. A name beginning
            with a dot matches all names below it, ``*`` matches every name.
        checks_hosts: Whether requests to other names are refused. Unnecessary with authentication,
            as a page has no credentials.
        forms: Whether a program may send a form's media types; in profile pulsar the endpoints
            decide, as recorded.
    """

    def __init__(self, *own_hosts: str, checks_hosts: bool, forms: bool) -> None:
        own = {"localhost", socket.gethostname(), *own_hosts}
        self._own_hosts = frozenset(map(str.lower, own))
        self._below = tuple(host for host in self._own_hosts if host.startswith("."))
        self._checks_hosts = checks_hosts and "*" not in own
        self._forms = forms

    def check_host(self, request: web.BaseRequest) -> None:
        """Refuse a request whose ``Host`` header names another server.

        Raises:
            RestError: 403.
        """
        # Not request.host: without the header, it calls the system's resolver and blocks.
        host = request.headers.get("Host")
        if self._checks_hosts and host is not None and not self._is_own_host(_name_of(host)):
            raise RestError(
                403,
                f"Host: {quoted(host)}: this server does not have that name: ask by its address, or"
                " set floodgateAllowedHosts to its names",
            )

    def _is_own_host(self, name: str) -> bool:
        return name in self._own_hosts or is_address(name) or name.endswith(self._below)

    def check(self, request: web.BaseRequest) -> None:
        """Refuse a change requested by another site's page or by a web form.

        Raises:
            RestError: 403 for another site's page, 415 for a form's media type.
        """
        site = request.headers.get("Sec-Fetch-Site", "none").lower()
        origin = request.headers.get("Origin")
        if site not in ("same-origin", "none"):
            raise _refused(f"Sec-Fetch-Site: {quoted(site)}")
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
        return self._is_own_host(url.hostname or "")

    def middleware(self) -> Middleware:
        """Return middleware that refuses requests of other sites' web pages."""

        @web.middleware
        async def check(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            request[_RULE] = self
            self.check_host(request)
            if request.method not in SAFE_METHODS:
                self.check(request)
            return await handler(request)

        return check


_RULE = web.RequestKey("cross_site_rule", CrossSiteRule)


def check_change(request: web.Request) -> None:
    """Refuse another site's request; called by handlers of a GET that changes something.

    Raises:
        RestError: 403 for another site's page, 415 for a form's media type.
    """
    request[_RULE].check(request)


def _name_of(host: str) -> str:
    """Return the host name from a ``Host`` header, without port and final dot.

    Empty if the header is malformed.
    """
    try:
        return (urlsplit(f"//{host.lower()}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def _refused(sign: str) -> RestError:
    return RestError(403, f"{sign}: a web page of another site may not change anything here")
