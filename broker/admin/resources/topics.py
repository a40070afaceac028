"""Admin requests about topics: ``/admin/v2/persistent`` and ``/admin/v2/non-persistent``.

Source: upstream PersistentTopicsBase, v2.PersistentTopics, v2.NonPersistentTopics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

import proto.PulsarApi_pb2 as pb
from broker.admin.bodies import partition_count, partitions_and_properties, string_map
from broker.admin.openapi import schemas
from broker.admin.paths import Takes, endpoint
from broker.admin.requests import (
    NAMESPACE_REASON,
    FailsUpstreamError,
    asked_bundle,
    flag,
    namespace_name,
    parse_properties,
    segment,
    topic_name,
)
from broker.admin.resources.messages.lifecycle import grow
from broker.admin.resources.messages.subjects import TopicResource
from broker.authorization.operations import NamespaceOperation, PolicyName, TopicOperation
from broker.bundles import BundleRange, bundle_named
from broker.ownership.ownership import Bundle
from broker.plugins.calls import ResourcesError
from broker.policies.values import BadBodyError
from broker.stores.snapshots.snapshot import by_kind
from broker.topics.properties import check_properties
from broker.topics.rules import (
    no_namespace,
    no_partition,
    no_such_partition,
    numbered,
)
from proto.names import PERSISTENT, TopicName, is_blank
from server.cross_site import check_change
from server.http import RestError
from server.seeing.audit import tell_change
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.stores.store import Mode, NamespaceSnapshot
    from broker.topic_lists.sequence import TopicSequence
    from proto.names import NamespaceName

MODE = pb.CommandGetTopicsOfNamespace
_SCHEMES = {
    MODE.PERSISTENT: (b"persistent:",),
    MODE.NON_PERSISTENT: (b"non-persistent:",),
    MODE.ALL: (b"non-persistent:", b"persistent:"),
}
"""Prefixes of the names in each sequence of a listing, by mode."""


class TopicAdmin(TopicResource):
    """Handlers of admin requests about persistent and non-persistent topics."""

    # -- lists --------------------------------------------------------------------------------

    @endpoint(
        "GET {domain}/{tenant}/{namespace}?bundle&properties&includeSystemTopic",
        NamespaceOperation.GET_TOPICS,
    )
    async def list_topics(self, request: web.Request) -> web.StreamResponse:
        """Return a namespace's persistent or non-persistent topics, each partition separately."""
        namespace = namespace_name(request)
        snapshot = await self._context.snapshot(namespace)
        persistent = segment(request, "domain") == PERSISTENT
        keep = await self._bundle_filter(request, namespace)
        listed = snapshot.persistent if persistent else snapshot.non_persistent
        sequences: Sequence[TopicSequence] = (listed,)
        if persistent and self._context.lister.filters and request.query.get("properties"):
            sequences = await self._with_properties(request, namespace)
        elif flag(request, "includeSystemTopic"):
            mode = MODE.PERSISTENT if persistent else MODE.NON_PERSISTENT
            sequences = with_system_topics(snapshot, mode)
        return await self._context.listings.respond(request, sequences, keep)

    async def _with_properties(
        self, request: web.Request, namespace: NamespaceName
    ) -> Sequence[TopicSequence]:
        """Return the topics with the requested properties, listed by the plug-in (PIP-452)."""
        lister = self._context.lister
        skips = self._context.rules.skips_unreadable_properties
        text = request.query["properties"]
        properties = parse_properties(text, lister.bounds, skip_unreadable=skips)
        try:
            listing = await lister.list_topics(namespace, MODE.PERSISTENT, properties)
        except ResourcesError as error:
            raise RestError(500, str(error)) from None
        return listing.sequences

    async def _bundle_filter(
        self, request: web.Request, namespace: NamespaceName
    ) -> Callable[[list[bytes]], list[bytes]] | None:
        text = request.query.get("bundle")
        if text is None:
            return None
        policies = await self._context.policies(namespace)
        bundle = bundle_named(text, policies.bundles)
        if bundle is not None:
            return bundle.kept
        if self._context.rules.unknown_bundle_is_empty:
            return lambda _: []
        raise RestError(
            412,
            f"bundle={text[:40]!r} is none of the {policies.bundles} bundles of {namespace}: "
            f"they are at /admin/v2/namespaces/{namespace}/bundles",
        )

    @endpoint("GET non-persistent/{tenant}/{namespace}/{topic}", NamespaceOperation.GET_BUNDLE)
    async def list_bundle(self, request: web.Request) -> web.StreamResponse:
        """Return the non-persistent topics of a bundle, which the path names instead of a topic."""
        namespace = namespace_name(request)
        snapshot = await self._context.store.snapshot(namespace)
        policies = await self._context.store.policies(namespace)
        if snapshot is None or policies is None:
            raise no_namespace()
        bundle = asked_bundle(request, policies.bundles, "topic")
        owned = self._context.ownership.owns_bundle(Bundle(namespace, bundle))
        if not owned and not await _has_any(bundle, snapshot.non_persistent):
            return web.Response(status=204)  # as recorded
        sequences = (snapshot.non_persistent,)
        return await self._context.listings.respond(request, sequences, bundle.kept)

    @endpoint(
        "GET {domain}/{tenant}/{namespace}/partitioned?includeSystemTopic",
        NamespaceOperation.GET_TOPICS,
    )
    async def list_partitioned(self, request: web.Request) -> web.StreamResponse:
        """Return a namespace's persistent or non-persistent partitioned topics, sorted bytewise."""
        counts = (await self._context.snapshot(namespace_name(request))).partitioned
        start = f"{segment(request, 'domain')}://".encode()
        system = flag(request, "includeSystemTopic")

        def listed(names: list[bytes]) -> list[bytes]:
            hidden = () if system else by_kind(names).system
            return [name for name in names if name.startswith(start) and name not in hidden]

        parts = (listed(leaf.names) for leaf in counts.leaves)
        most_bytes = sum(leaf.entry_bytes for leaf in counts.leaves)
        return await self._context.listings.respond_in_parts(request, parts, most_bytes)

    # -- topics without partitions ------------------------------------------------------------

    @endpoint(
        "PUT {topic}", NamespaceOperation.CREATE_TOPIC, body=schemas.PROPERTIES, body_required=False
    )
    async def create(self, request: web.Request) -> None:
        """Create a topic without partitions; the body may have the topic's properties."""
        drops_null = segment(request, "domain") != PERSISTENT  # as recorded
        properties = await string_map(request, drops_null=drops_null)
        topic = topic_name(request, NAMESPACE_REASON)
        check_properties(str(topic), properties)
        found = numbered(topic)
        if found is not None and is_blank(found[0].local_name):
            raise FailsUpstreamError(412, no_such_partition(topic, found[0]).reason)
        await self._context.topics.create(topic, properties)
        if self._context.ownership.alone:
            # Upstream creates the topic at its owner, which serves the bundle from then on.
            await self._context.ownership.acquire(topic)

    @endpoint("GET {topic}/subscriptions", TopicOperation.GET_SUBSCRIPTIONS)
    async def list_subscriptions(self, request: web.Request) -> object:
        """Return the names of a topic's subscriptions, merged over all partitions."""
        topic = topic_name(request)
        if self._context.rules.creates_used_partitions and topic.partition_index >= 0:
            await self._use_partition(request, topic)
        names: dict[str, None] = {}
        async for one in in_turns(await self._topics.all(request)):
            names |= dict.fromkeys(subscription.name for subscription in one.subscriptions)
        return list(names)

    async def _use_partition(self, request: web.Request, topic: TopicName) -> None:
        """Create a missing non-persistent partition, as upstream does when it is first used.

        Raises:
            RefusedError: The partition is missing and cannot be created.
            RestError: The request to create comes from another site's page.
        """
        snapshot = await self._context.store.snapshot(topic.namespace)
        if snapshot is None or snapshot.contains(topic):
            return
        count = snapshot.partitioned.get(str(topic.partitioned_name), 0)
        if topic.persistent or topic.partition_index >= count:
            raise no_partition(topic, count)
        check_change(request)
        await self._context.topics.create_for_client(topic)
        tell_change(request)

    # -- partitioned topics -------------------------------------------------------------------

    @endpoint("GET {topic}/partitions?checkAllowAutoCreation", TopicOperation.LOOKUP)
    async def get_partitions(self, request: web.Request) -> object:
        """Return the number of a topic's partitions, 0 for a topic without partitions."""
        topic = topic_name(request)
        create = flag(request, "checkAllowAutoCreation")
        if create:
            check_change(request)
        before = await self._context.store.snapshot(topic.namespace)
        count = await self._context.topics.partitions(topic, create=create)
        if count and before is not None and str(topic) not in before.partitioned:
            tell_change(request)
        body: dict[str, object] = {"partitions": count, "deleted": False}
        if count:
            properties = await self._context.store.properties(topic.namespace, str(topic))
            body |= {"properties": dict(properties)} if properties else {}
        return body

    @endpoint(
        "PUT {topic}/partitions",
        PolicyName.PARTITION,
        takes=Takes.METADATA,
        body=schemas.PARTITIONS_WITH_PROPERTIES,
        refused=(406, 422),
    )
    async def create_with_metadata(self, request: web.Request) -> None:
        """Create a partitioned topic; the body has the number of partitions and properties."""
        count, properties = await partitions_and_properties(request)
        await self._create_partitioned(request, count, properties)

    @endpoint(
        "PUT {topic}/partitions", PolicyName.PARTITION, takes=Takes.NUMBER, refused=(406, 422)
    )
    async def create_partitioned(self, request: web.Request) -> None:
        """Create a partitioned topic; the body is the number of partitions."""
        await self._create_partitioned(request, await partition_count(request), {})

    async def _create_partitioned(
        self, request: web.Request, count: int, properties: dict[str, str]
    ) -> None:
        topic = topic_name(request, NAMESPACE_REASON)
        check_properties(str(topic), properties)
        await self._context.topics.create_partitioned(topic, count, properties)

    @endpoint(
        "POST {topic}/partitions", PolicyName.PARTITION, takes=Takes.NUMBER, refused=(406, 422)
    )
    async def grow(self, request: web.Request) -> None:
        """Add partitions to a partitioned topic; the body is the new number of partitions."""
        count = await partition_count(request)
        await grow(self._context, topic_name(request), count)

    # -- properties ---------------------------------------------------------------------------

    @endpoint("GET {topic}/properties", TopicOperation.GET_METADATA, refused=(406,))
    async def get_properties(self, request: web.Request) -> object:
        """Return a topic's properties."""
        topic = topic_name(request)
        properties = await self._context.properties.of(topic)
        nothing = not properties and self._context.rules.accepts_no_property
        if nothing and await self._is_partitioned(topic):
            return None  # as recorded: no body for a partitioned topic
        return dict(properties)

    @endpoint(
        "PUT {topic}/properties",
        TopicOperation.UPDATE_METADATA,
        body=schemas.PROPERTIES,
        refused=(406,),
    )
    async def update_properties(self, request: web.Request) -> None:
        """Add or replace properties of a topic."""
        topic = topic_name(request)
        try:
            properties = await string_map(request)
        except BadBodyError as error:
            if topic.persistent or error.upstream_status == 400:
                raise
            properties = {}
        if not topic.persistent:
            raise RestError(406, "Need to provide a persistent topic name")
        if properties or not self._context.rules.accepts_no_property:
            await self._context.properties.update(topic, properties)

    @endpoint("DELETE {topic}/properties?key", TopicOperation.DELETE_METADATA, refused=(406,))
    async def remove_property(self, request: web.Request) -> None:
        """Remove a property of a topic."""
        key, topic = request.query.get("key"), topic_name(request)
        if not key:
            properties = await self._context.properties.of(topic)
            if self._context.rules.accepts_no_property and (
                key is not None or properties or await self._is_partitioned(topic)
            ):
                return  # as recorded: a no-op
            status = 500 if self._context.rules.fails_as_upstream else 412
            raise RestError(status, "the query should name the property to remove: ?key=...")
        await self._context.properties.remove(topic, key)

    async def _is_partitioned(self, topic: TopicName) -> bool:
        return str(topic) in (await self._context.snapshot(topic.namespace)).partitioned


async def _has_any(bundle: BundleRange, topics: TopicSequence) -> bool:
    async for name in in_turns(topics.names()):
        if bundle.holds(name):
            return True
    return False


def with_system_topics(snapshot: NamespaceSnapshot, mode: Mode) -> tuple[TopicSequence, ...]:
    """Return the names of a namespace's topics as sequences, including its system topics."""
    sequences = snapshot.listing(mode).sequences
    return tuple(
        sequence.apply([name for name in snapshot.system if name.startswith(scheme)], ())
        for sequence, scheme in zip(sequences, _SCHEMES[mode], strict=True)
    )
