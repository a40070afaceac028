"""Policies for the placement of bookies and topics: stored and shown, without effect.

A namespace has local policies after a lookup of its bundles, or after a change of the policies.

Source: upstream NamespacesBase, LocalPolicies; recorded answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import JAVA_BLANKS, json_body
from broker.admin.paths import Takes, endpoint
from broker.admin.requests import namespace_name, plain, segment
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.operations import Level, PolicyName
from broker.policies.documents import LOCAL_POLICIES
from broker.policies.values import Member, given, object_of, schema_of, text
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from proto.names import NamespaceName

_BOOKIES, _GROUP = "bookieAffinityGroup", "namespaceAntiAffinityGroup"
read_bookies = given(
    object_of(
        Member("bookkeeperAffinityGroupPrimary", text),
        Member("bookkeeperAffinityGroupSecondary", text),
    )
)
"""Parses the groups of bookies of a namespace."""
_MAX_GROUP_BYTES = 1_000


class LocalPolicyAdmin(PolicyResource):
    """Handlers of admin requests about bookie groups and anti-affinity groups."""

    def _local(self, namespace: NamespaceName) -> Mapping[str, Any] | None:
        return self._kept(namespace).get(LOCAL_POLICIES)

    async def _keep_local(self, namespace: NamespaceName, name: str, value: object) -> None:
        def with_one(document: Mapping[str, Any]) -> object:
            policies = {**(document.get(LOCAL_POLICIES) or {}), name: value}
            return {one: given for one, given in policies.items() if given is not None}

        # As upstream even for a missing namespace.
        await self._context.message_policies.change(namespace, LOCAL_POLICIES, with_one)

    async def _of_group(self, request: web.Request) -> NamespaceName:
        # Upstream stores a group even for a missing namespace.
        if self._context.rules.fails_as_upstream:
            return namespace_name(request)
        return await self._existing(request)

    async def _existing(self, request: web.Request) -> NamespaceName:
        namespace = namespace_name(request)
        await self._context.bundles(namespace)
        return namespace

    # -- groups of bookies --------------------------------------------------------------------

    @endpoint(
        "GET namespaces/{namespace}/persistence/bookieAffinity",
        Level.SUPERUSER,
        takes=Takes.NOTHING,
    )
    async def get_bookies(self, request: web.Request) -> object:
        """Return the bookie affinity groups of a namespace."""
        namespace = await self._existing(request)
        kept = self._local(namespace)
        if kept is None and not self._context.ownership.was_looked_up(namespace):
            raise RestError(404, "Namespace local-policies does not exist")
        return (kept or {}).get(_BOOKIES)

    @endpoint(
        "POST namespaces/{namespace}/persistence/bookieAffinity",
        Level.SUPERUSER,
        takes=Takes.JSON,
        body=schema_of(read_bookies),
    )
    async def set_bookies(self, request: web.Request) -> None:
        """Store bookie affinity groups for a namespace; null removes them."""
        bookies = read_bookies(await json_body(request))
        await self._keep_local(await self._existing(request), _BOOKIES, bookies)

    @endpoint(
        "DELETE namespaces/{namespace}/persistence/bookieAffinity",
        Level.SUPERUSER,
        takes=Takes.NOTHING,
    )
    async def remove_bookies(self, request: web.Request) -> None:
        """Remove the bookie affinity groups of a namespace."""
        await self._keep_local(await self._existing(request), _BOOKIES, None)

    # -- anti-affinity ------------------------------------------------------------------------

    @endpoint(
        "GET namespaces/{namespace}/antiAffinity", PolicyName.ANTI_AFFINITY, takes=Takes.NOTHING
    )
    async def get_group(self, request: web.Request) -> object:
        """Return a namespace's anti-affinity group as plain text; empty if not set."""
        return plain((self._local(namespace_name(request)) or {}).get(_GROUP))

    @endpoint(
        "POST namespaces/{namespace}/antiAffinity",
        PolicyName.ANTI_AFFINITY,
        takes=Takes.JSON,
        body={"type": "string"},
    )
    async def set_group(self, request: web.Request) -> None:
        """Store the request's body, unparsed, as a namespace's anti-affinity group."""
        body = await request.read()
        group = body.decode(errors="replace")
        if not group.strip(JAVA_BLANKS):
            raise RestError(412, "Anti-affinity group can't be empty")
        if len(body) > _MAX_GROUP_BYTES:
            raise RestError(
                412, f"Anti-affinity group has {len(body)} bytes: {_MAX_GROUP_BYTES} at most"
            )
        await self._keep_local(await self._of_group(request), _GROUP, group)

    @endpoint(
        "DELETE namespaces/{namespace}/antiAffinity", PolicyName.ANTI_AFFINITY, takes=Takes.NOTHING
    )
    async def remove_group(self, request: web.Request) -> None:
        """Remove the anti-affinity group of a namespace."""
        await self._keep_local(await self._of_group(request), _GROUP, None)

    @endpoint(
        "GET namespaces/{cluster}/antiAffinity/{group}?tenant", Level.SUPERUSER, takes=Takes.NOTHING
    )
    async def members(self, request: web.Request) -> object:
        """Return the tenant's namespaces that are in an anti-affinity group."""
        cluster, group = segment(request, "cluster"), segment(request, "group")
        tenant = request.query.get("tenant")
        if tenant is None or not (tenant or self._context.rules.fails_as_upstream):
            raise RestError(400, "Tenant should not be null")
        if cluster != self._context.config.cluster_name:
            raise RestError(412, f"Cluster {cluster[:100]} does not exist.")
        if not tenant:
            raise RestError(500, "Tenant should not be empty")
        namespaces = await self._context.store.namespaces(tenant)
        return [str(one) for one in namespaces if (self._local(one) or {}).get(_GROUP) == group]
