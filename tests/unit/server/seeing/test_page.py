"""The page for people is one file that asks nobody but its own server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from server.seeing.page import page_routes

if TYPE_CHECKING:
    from aiohttp import web


async def test_the_page_has_all_that_it_needs_in_itself() -> None:
    # Given
    shown, _ = page_routes("Floodgate broker")
    # When
    answer = cast("web.Response", await shown.handler(cast("web.Request", None)))
    text = answer.text or ""
    # Then
    assert "<title>Floodgate broker</title>" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)|url\(|@import|//\w+\.", text)
    assert "innerHTML" not in text
    assert "default-src 'none'; connect-src 'self'" in answer.headers["Content-Security-Policy"]
