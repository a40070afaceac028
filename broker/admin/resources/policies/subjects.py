"""The namespace or topic of a request about policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.requests import namespace_name, topic_name
from broker.topics.rules import no_namespace, not_found
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName, TopicName

NAMESPACE_PATH = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC_PATH = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"


async def existing_namespace(
    context: AdminContext, request: web.Request, *, by_policies: bool = False
) -> NamespaceName:
    """Return the namespace in the path.

    Args:
        context: The parts of the broker.
        request: A request with a namespace in the path.
        by_policies: Whether upstream first refuses the missing policies of a missing namespace.

    Raises:
        RestError: 412, the name is invalid; 404, the namespace does not exist.
    """
    namespace = namespace_name(request)
    if by_policies and await context.store.policies(namespace) is None:
        raise RestError(404, "Namespace policies does not exist")
    await context.policies(namespace)
    return namespace


async def existing_topic(context: AdminContext, request: web.Request) -> TopicName:
    """Return the topic, partitioned topic or partition in the path.

    Raises:
        RestError: 412, the name is invalid.
        RefusedError: The topic or its namespace does not exist.
    """
    topic = topic_name(request)
    snapshot = await context.store.snapshot(topic.namespace)
    if snapshot is None:
        raise no_namespace()
    if not snapshot.contains(topic):
        raise not_found(topic)
    return topic


async def topic_with_policies(context: AdminContext, request: web.Request) -> TopicName:
    """Return the topic or partitioned topic in the path, for its policies.

    Raises:
        RestError: 412, the name is invalid, or a partition's.
        RefusedError: The topic or its namespace does not exist.
    """
    if topic_name(request).partition_index >= 0:
        raise RestError(412, "Not allowed to set/get topic policy for a partition")
    return await existing_topic(context, request)
