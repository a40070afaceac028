"""Policies for the placement of bookies and topics: stored and shown, without effect.

A namespace has local policies after a lookup of its bundles, or after a change of the policies.

Source: upstream NamespacesBase, LocalPolicies; recorded answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from broker.admin.bodies import JAVA_BLANKS, json_body
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, namespace_name, segment
from broker.admin.resources.policies.endpoints import shown
from broker.admin.resources.policies.row import Empty
from broker.admin.resources.policies.subjects import NAMESPACE_PATH
from broker.admin.resources.policies.values import Field, given, object_of, schema_of, text
from broker.authorization.operations import Level, PolicyName
from broker.policies.documents import LOCAL_POLICIES
from broker.topics.rules import no_namespace
from server.http import JSON_TYPE, RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName

_BOOKIES, _GROUP = "bookieAffinityGroup", "namespaceAntiAffinityGroup"
read_bookies = given(
    object_of(
        Field("bookkeeperAffinityGroupPrimary", text),
        Field("bookkeeperAffinityGroupSecondary", text),
    )
)
"""Parses the groups of bookies of a namespace."""
_MAX_GROUP_BYTES = 1_000


class LocalPolicyAdmin:
    """Requests about local policies."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def _kept(self, namespace: NamespaceName) -> Mapping[str, Any] | None:
        return self._context.message_policies.document(namespace).get(LOCAL_POLICIES)

    async def _keep(self, namespace: NamespaceName, name: str, value: object) -> None:
        policies = {**(self._kept(namespace) or {}), name: value}
        kept = {one: given for one, given in policies.items() if given is not None}
        await self._context.message_policies.set(namespace, LOCAL_POLICIES, kept)

    async def _of_group(self, request: web.Request) -> NamespaceName:
        # Upstream stores a group even for a missing namespace.
        if self._context.rules.fails_as_upstream:
            return namespace_name(request)
        return await self._existing(request)

    async def _existing(self, request: web.Request) -> NamespaceName:
        namespace = namespace_name(request)
        if await self._context.store.policies(namespace) is None:
            raise no_namespace()
        return namespace

    # -- groups of bookies --------------------------------------------------------------------

    @Endpoint("GET", f"{NAMESPACE_PATH}/persistence/bookieAffinity", Level.SUPERUSER)
    async def get_bookies(self, request: web.Request) -> web.Response:
        """Return the groups of bookies of a namespace."""
        namespace = await self._existing(request)
        kept = self._kept(namespace)
        if kept is None and not self._context.ownership.was_looked_up(namespace):
            raise RestError(404, "Namespace local-policies does not exist")
        return shown((kept or {}).get(_BOOKIES), Empty.NO_BODY)

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/persistence/bookieAffinity",
        Level.SUPERUSER,
        Takes.JSON,
        body=schema_of(read_bookies),
    )
    async def set_bookies(self, request: web.Request) -> web.Response:
        """Store groups of bookies for a namespace; null removes them."""
        bookies = read_bookies(await json_body(request))
        await self._keep(await self._existing(request), _BOOKIES, bookies)
        return done()

    @Endpoint("DELETE", f"{NAMESPACE_PATH}/persistence/bookieAffinity", Level.SUPERUSER)
    async def remove_bookies(self, request: web.Request) -> web.Response:
        """Remove the groups of bookies of a namespace."""
        await self._keep(await self._existing(request), _BOOKIES, None)
        return done()

    # -- anti-affinity ------------------------------------------------------------------------

    @Endpoint("GET", f"{NAMESPACE_PATH}/antiAffinity", PolicyName.ANTI_AFFINITY)
    async def get_group(self, request: web.Request) -> web.Response:
        """Return a namespace's anti-affinity group as plain text; empty if missing."""
        group = (self._kept(namespace_name(request)) or {}).get(_GROUP)
        if group is None:
            return done(200)
        return web.Response(body=group.encode(), headers={"Content-Type": JSON_TYPE})

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/antiAffinity",
        PolicyName.ANTI_AFFINITY,
        Takes.JSON,
        body={"type": "string"},
    )
    async def set_group(self, request: web.Request) -> web.Response:
        """Store the body, unparsed, as the anti-affinity group of a namespace."""
        body = await request.read()
        group = body.decode(errors="replace")
        if not group.strip(JAVA_BLANKS):
            raise RestError(412, "Anti-affinity group can't be empty")
        if len(body) > _MAX_GROUP_BYTES:
            raise RestError(
                412, f"Anti-affinity group has {len(body)} bytes: {_MAX_GROUP_BYTES} at most"
            )
        await self._keep(await self._of_group(request), _GROUP, group)
        return done()

    @Endpoint("DELETE", f"{NAMESPACE_PATH}/antiAffinity", PolicyName.ANTI_AFFINITY)
    async def remove_group(self, request: web.Request) -> web.Response:
        """Remove the anti-affinity group of a namespace."""
        await self._keep(await self._of_group(request), _GROUP, None)
        return done()

    @Endpoint(
        "GET",
        "/admin/v2/namespaces/{cluster}/antiAffinity/{group}",
        Level.SUPERUSER,
        query=("tenant",),
    )
    async def members(self, request: web.Request) -> web.Response:
        """Return the namespaces of a tenant in an anti-affinity group."""
        cluster, group = segment(request, "cluster"), segment(request, "group")
        tenant = request.query.get("tenant")
        if tenant is None or not (tenant or self._context.rules.fails_as_upstream):
            raise RestError(400, "Tenant should not be null")
        if cluster != self._context.config.cluster_name:
            raise RestError(412, f"Cluster {cluster[:100]} does not exist.")
        if not tenant:
            raise RestError(500, "Tenant should not be empty")
        namespaces = await self._context.store.namespaces(tenant)
        return json_response(
            [str(one) for one in namespaces if (self._kept(one) or {}).get(_GROUP) == group]
        )
