"""The audit line of a change names the author, also through a proxy, and the change."""

import logging

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from server.authentication.providers import Principal
from server.authentication.requests import SESSION
from server.authentication.session import ClientSession
from server.seeing.audit import audited

ANN = Principal("ann\n", "none")


@pytest.mark.parametrize(("original", "who"), [(None, "'proxy'"), (ANN, "'proxy' for 'ann\\n'")])
async def test_a_change_is_logged_with_its_author(original, who, caplog) -> None:
    caplog.set_level(logging.INFO, "server.seeing.audit")
    request = make_mocked_request("DELETE", "/a/b?token=s3cret")
    request[SESSION] = ClientSession(Principal("proxy", "token"), original)

    async def answered(_: web.Request) -> web.Response:
        return web.Response(status=204)

    await audited(request, answered)
    assert caplog.messages == [f"changed by {who}: DELETE /a/b"]
