"""``/floodgate/``: a web page of current connections and budgets.

A single file without dependencies: it polls this server's REST, every two seconds while visible,
and reports an unreachable server.
"""

from __future__ import annotations

from importlib import resources

from aiohttp import web

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
    """Return the routes of the page with the given title."""
    source = resources.files(__package__ or "server.seeing").joinpath(_PAGE)
    page = source.read_text(encoding="utf-8").replace("{{title}}", title)

    async def shown(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html", headers=_HEADERS)

    async def without_slash(_: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": PAGE_PATH})

    return [web.get(PAGE_PATH, shown), web.get(PAGE_PATH.removesuffix("/"), without_slash)]
