"""The namespace or topic named by a request about policies, and access to its policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.paths import Resource
from broker.admin.requests import namespace_name, topic_name
from broker.errors import RefusedError
from broker.policies.documents import GLOBAL, scoped
from broker.policies.policy import NO_NAMESPACE
from broker.topics.rules import no_namespace, not_found
from proto.names import NamespaceName
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from broker.policies.service import Change
    from proto.names import TopicName


class PolicyResource(Resource):
    """The base class of handlers of admin requests about policies."""

    def _kept(self, of: NamespaceName | TopicName, *, globally: bool = False) -> Mapping[str, Any]:
        """Return the policies set for a namespace or topic itself, by policy key.

        Args:
            of: The namespace or topic.
            globally: Whether the global policies of a topic are asked for, not its local ones.
        """
        return scoped(self._context.message_policies.document(of), globally=globally)

    async def _keep(
        self, of: NamespaceName | TopicName, key: str, value: object, *, globally: bool = False
    ) -> None:
        """Set a policy of a namespace or topic; None removes the policy."""
        await self._change(of, key, lambda _: value, globally=globally)

    async def _change(
        self, of: NamespaceName | TopicName, key: str, changed: Change, *, globally: bool = False
    ) -> Mapping[str, Any]:
        """Change a policy of a namespace or topic; see PolicyService.change.

        Raises:
            RestError, RefusedError: The namespace or topic does not exist any more.
        """
        policies = self._context.message_policies
        before = await policies.change(
            of,
            GLOBAL + key if globally else key,
            lambda document: changed(scoped(document, globally=globally)),
        )
        try:
            await self._check_there(of)
        except (RestError, RefusedError):
            # Otherwise the next one of this name would have the policy.
            await policies.forget(of)
            raise
        return before

    async def _check_there(self, of: NamespaceName | TopicName) -> None:
        if isinstance(of, NamespaceName):
            await self._context.policies(of)
            return
        snapshot = await self._context.store.snapshot(of.namespace)
        if snapshot is None:
            raise no_namespace()
        if not snapshot.contains(of):
            raise not_found(of)

    async def _namespace(
        self, request: web.Request, *, missing: str = NO_NAMESPACE
    ) -> NamespaceName:
        """Return the existing namespace in the request's path.

        Args:
            request: A request with a namespace in the path.
            missing: The error text if the namespace does not exist; empty in profile pulsar only.

        Raises:
            RestError: 412, the name is invalid; 404, the namespace does not exist.
        """
        namespace = namespace_name(request)
        if await self._context.store.policies(namespace) is None:
            unnamed = self._context.rules.leaves_reasons_out
            raise RestError(404, missing if unnamed else missing or NO_NAMESPACE)
        return namespace

    async def _existing_topic(self, request: web.Request) -> TopicName:
        """Return the existing topic, partitioned topic or partition in the request's path.

        Raises:
            RestError: 412, the name is invalid.
            RefusedError: The topic or its namespace does not exist.
        """
        topic = topic_name(request)
        await self._check_there(topic)
        return topic

    async def _topic(self, request: web.Request) -> TopicName:
        """Return the existing topic or partitioned topic in the path, but refuse a partition.

        Raises:
            RestError: 412, the name is invalid, or names a partition.
            RefusedError: The topic or its namespace does not exist.
        """
        if topic_name(request).partition_index >= 0:
            raise RestError(412, "Not allowed to set/get topic policy for a partition")
        return await self._existing_topic(request)
