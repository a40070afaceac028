"""The page for people is one file that contacts only the serving server."""

import re
from typing import cast

from aiohttp import web

from server.seeing.page import page_routes


async def test_the_page_loads_no_external_resource() -> None:
    shown, _ = page_routes("Floodgate broker")
    answer = cast("web.Response", await shown.handler(cast("web.Request", None)))
    text = answer.text or ""
    assert "<title>Floodgate broker</title>" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)|url\(|@import|//\w+\.", text)
    assert "innerHTML" not in text
    assert "default-src 'none'; connect-src 'self'" in answer.headers["Content-Security-Policy"]
