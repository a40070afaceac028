"""HTTP redirects of requests to the broker that owns the topic's bundle.

Source: upstream PulsarWebResource.validateTopicOwnership: 307, with ``authoritative`` if the named
broker shall become the owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from yarl import URL

from broker.admin.requests import flag
from broker.ownership.ownership import NotServedError
from server.connection.request_errors import RequestError
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.admin.context import AdminContext
    from broker.ownership.ownership import Owner
    from proto.names import TopicName


class ServedElsewhereError(Exception):
    """A request must be redirected to the broker that owns its topic.

    Attributes:
        owner: The broker that owns the topic's bundle, or the candidate for it.
    """

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner)
        self.owner = owner


async def check_owner(context: AdminContext, topic: TopicName) -> None:
    """Redirect a request to a topic's owner, unless this broker is or becomes the owner.

    A request about a missing namespace passes, because its handler refuses it.

    Raises:
        ServedElsewhereError: Another broker is the owner or the candidate.
        RestError: 503, no broker can serve the topic for now.
    """
    if context.ownership.owns(topic):
        return
    try:
        owner = await owner_of(context, topic, authoritative=False)
    except RequestError:
        return
    if not owner.here:
        raise ServedElsewhereError(owner)


async def check_owner_of_all(context: AdminContext, topics: Sequence[TopicName]) -> None:
    """Redirect a request if another broker owns all partitions of a topic.

    See ``check_owner``.

    Raises:
        ServedElsewhereError: Another broker serves all partitions.
        RestError: 503, several brokers serve the partitions. Upstream calls each broker.
    """
    elsewhere = []
    async for topic in in_turns(topics):
        try:
            await check_owner(context, topic)
        except ServedElsewhereError as error:
            elsewhere.append(error)
    if not elsewhere:
        return
    if len(elsewhere) == len(topics) and len({error.owner for error in elsewhere}) == 1:
        raise elsewhere[0]
    name = topics[0].partitioned_name
    raise RestError(
        503, f"the partitions of {name} are served by several brokers: ask for each partition"
    )


async def owner_of(context: AdminContext, topic: TopicName, *, authoritative: bool) -> Owner:
    """Return the broker that owns a topic or, without an owner, would become the owner.

    Raises:
        RestError: 503, no broker can serve the topic for now.
    """
    try:
        return await context.ownership.acquire(topic, authoritative=authoritative)
    except NotServedError as error:
        raise RestError(503, error.message) from None


def is_authoritative(request: web.Request) -> bool:
    """Return True if another broker has chosen this broker as the topic's owner."""
    return flag(request, "authoritative")


def redirect_to(owner: Owner, request: web.Request) -> web.HTTPTemporaryRedirect:
    """Return an HTTP redirect that sends a request to a topic's owner."""
    query = {name: value for name, value in request.query.items() if name != "authoritative"}
    query["authoritative"] = "false" if owner.decided else "true"
    urls = owner.urls
    base = (urls.web_tls if request.scheme == "https" else urls.web) or urls.any_web
    path = URL(f"{base}{request.rel_url.raw_path}", encoded=True)
    return web.HTTPTemporaryRedirect(path.with_query(query))
