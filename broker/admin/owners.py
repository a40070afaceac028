"""Requests that only the owner of a topic's bundle can answer: the others redirect to it.

Source: upstream PulsarWebResource.validateTopicOwnership: 307, with ``authoritative`` where the one
that is named shall become the owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from yarl import URL

from broker.admin.requests import flag
from broker.ownership.ownership import NotServedError
from server.http import RestError

if TYPE_CHECKING:
    from broker.admin.context import AdminContext
    from broker.ownership.ownership import Owner
    from proto.names import TopicName


async def check_owner(context: AdminContext, request: web.Request, topic: TopicName) -> None:
    """Return if this broker serves a topic, and does from now on if nobody did.

    Raises:
        HTTPTemporaryRedirect: Another broker does, or shall.
        RestError: 503, nobody can for now.
    """
    if context.ownership.owns(topic):
        return
    owner = await owner_of(context, topic, authoritative=is_authoritative(request))
    if not owner.here:
        raise redirect_to(owner, request)


async def owner_of(context: AdminContext, topic: TopicName, *, authoritative: bool) -> Owner:
    """Return the broker that serves a topic, or shall.

    Raises:
        RestError: 503, nobody can for now.
    """
    try:
        return await context.ownership.acquire(topic, authoritative=authoritative)
    except NotServedError as error:
        raise RestError(503, error.message) from None


def is_authoritative(request: web.Request) -> bool:
    """Return True if another broker has chosen this one."""
    return flag(request, "authoritative")


def redirect_to(owner: Owner, request: web.Request) -> web.HTTPTemporaryRedirect:
    """Return the answer that sends a client to a topic's owner."""
    query = {name: value for name, value in request.query.items() if name != "authoritative"}
    query["authoritative"] = "false" if owner.decided else "true"
    path = URL(f"{owner.web_service_url}{request.rel_url.raw_path}", encoded=True)
    return web.HTTPTemporaryRedirect(path.with_query(query))
