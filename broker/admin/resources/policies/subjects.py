"""The namespace or topic that a request about policies names."""

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
        request: Whose path names it.
        by_policies: Whether upstream misses its policies, and says so, before the namespace.

    Raises:
        RestError: 412, the name is not valid; 404, it does not exist.
    """
    namespace = namespace_name(request)
    if by_policies and await context.store.policies(namespace) is None:
        raise RestError(404, "Namespace policies does not exist")
    await context.policies(namespace)
    return namespace


async def existing_topic(context: AdminContext, request: web.Request) -> TopicName:
    """Return the topic, partitioned topic or partition in the path.

    Raises:
        RestError: 412, the name is not valid.
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
    """Return the topic or partitioned topic in the path, which may have policies.

    Raises:
        RestError: 412, the name is not valid, or a partition's.
        RefusedError: The topic or its namespace does not exist.
    """
    if topic_name(request).partition_index >= 0:
        raise RestError(412, "Not allowed to set/get topic policy for a partition")
    return await existing_topic(context, request)
