"""Routes of the admin REST, and the dispatch of each request to its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.negotiation import accepted_type, allowed, taking
from broker.admin.owners import ServedElsewhereError, redirect_to
from broker.admin.paths import PathTable
from broker.admin.requests import answered
from broker.admin.resources.brokers import BrokerAdmin, OwnershipAdmin
from broker.admin.resources.constants import ConstantAdmin, NotImplementedAdmin
from broker.admin.resources.lookup import LookupAdmin
from broker.admin.resources.messages.cursors import CursorAdmin
from broker.admin.resources.messages.lifecycle import LifecycleAdmin
from broker.admin.resources.messages.namespaces import NamespaceMessageAdmin
from broker.admin.resources.messages.reading import ReadingAdmin
from broker.admin.resources.messages.stats import StatsAdmin
from broker.admin.resources.messages.subscriptions import SubscriptionAdmin
from broker.admin.resources.namespaces import NamespaceAdmin
from broker.admin.resources.policies.endpoints import PolicyAdmin
from broker.admin.resources.policies.others import OtherPolicyAdmin
from broker.admin.resources.policies.permissions import PermissionAdmin
from broker.admin.resources.policies.placement.local import LocalPolicyAdmin
from broker.admin.resources.policies.placement.offload import OffloadAdmin
from broker.admin.resources.policies.quotas import QuotaAdmin
from broker.admin.resources.schemas import SchemaAdmin
from broker.admin.resources.tenants import TenantAdmin
from broker.admin.resources.topics import TopicAdmin
from server.front_page import Place
from server.http import JSON_TYPE, RestError, json_response

if TYPE_CHECKING:
    from broker.admin.authorizing import RequestAuthorization
    from broker.admin.context import AdminContext, AdminRules
    from broker.admin.paths import Endpoint, FoundPath

_OTHERS = r"(?!/v2/floodgate(?:/|$))"
"""Paths below ``/admin`` except Floodgate's, which have separate routes."""
_ROOTS = ("/admin/v2", "/admin/v3", "/lookup")
"""Roots that upstream's web server redirects to the same path with a slash at the end."""

ADMIN_PLACES = (
    Place("/admin/v2/brokers/version", "the version"),
    Place("/admin/v2/brokers/configuration/runtime", "every key with the value in force"),
    Place("/admin/v2/tenants", "Pulsar's admin REST: tenants"),
    Place("/admin/v2/namespaces/{tenant}", "their namespaces"),
    Place("/admin/v2/persistent/{tenant}/{namespace}", "their topics"),
    Place("/admin/v2/schemas/{tenant}/{namespace}/{topic}/schemas", "the schemas of a topic"),
    Place("/lookup/v2/topic/persistent/{tenant}/{namespace}/{topic}", "the broker of a topic"),
)
"""Examples of paths on the front page."""
_RESOURCES = (
    PolicyAdmin,
    BrokerAdmin,
    OwnershipAdmin,
    TenantAdmin,
    NamespaceAdmin,
    TopicAdmin,
    SchemaAdmin,
    LookupAdmin,
    SubscriptionAdmin,
    CursorAdmin,
    ReadingAdmin,
    LifecycleAdmin,
    StatsAdmin,
    NamespaceMessageAdmin,
    QuotaAdmin,
    PermissionAdmin,
    OffloadAdmin,
    LocalPolicyAdmin,
    OtherPolicyAdmin,
    ConstantAdmin,
    NotImplementedAdmin,
)


def admin_routes(
    context: AdminContext, authorization: RequestAuthorization | None = None
) -> list[web.RouteDef]:
    """Return the routes of the admin REST API; None as ``authorization`` allows all requests."""
    requests = AdminRequests(endpoints(context), context.rules, authorization)
    return [
        web.route("*", f"/admin{{rest:{_OTHERS}[\\s\\S]*}}", requests.answer),
        web.route("*", r"/lookup{rest:[\s\S]*}", requests.answer),
    ]


def endpoints(context: AdminContext) -> list[Endpoint]:
    """Return all endpoints of the admin REST API."""
    return [one for resource in _RESOURCES for one in resource(context).endpoints()]


class AdminRequests:
    """Dispatches each admin request to its handler."""

    def __init__(
        self,
        endpoints: list[Endpoint],
        rules: AdminRules,
        authorization: RequestAuthorization | None = None,
    ) -> None:
        self._paths = PathTable(endpoints)
        self._rules = rules
        self._authorization = authorization

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer an admin request: find its endpoint, authorize it, and call the handler.

        Raises:
            RestError: The path or method does not exist, the body's or the accepted type is not
                supported, or the request is not allowed.
            HTTPTemporaryRedirect: Another broker serves the topic.
        """
        # Upstream's web server refuses NUL: topics with NUL in the name cannot be administered.
        takes_nul = not self._rules.fails_as_upstream
        resources = self._paths.find(request.rel_url.raw_path, takes_nul=takes_nul)
        if not resources:
            return _no_resource(request)
        if request.method == "OPTIONS":
            return _options(allowed(resources[0].methods))
        method = "GET" if request.method == "HEAD" else request.method
        resource = next((one for one in resources if method in one.methods), None)
        if resource is None:
            return _not_allowed(request, resources[0])
        media_type = request.headers.get("Content-Type")
        endpoint = taking(resource.methods[method], media_type, has_body=request.body_exists)
        wanted = accepted_type(request.headers.get("Accept", ""))
        request.match_info.update(resource.variables)
        if self._authorization is not None:
            await self._authorization.check(endpoint.needs, request)
        try:
            response = await answered(endpoint, request, self._rules)
        except ServedElsewhereError as error:
            raise redirect_to(error.owner, request) from None
        is_json = response.headers.get("Content-Type") == JSON_TYPE
        if is_json and self._rules.returns_accepted_type:
            response.headers["Content-Type"] = wanted
        return response


def _options(names: list[str]) -> web.Response:
    headers = {"Allow": ",".join(names), "Content-Type": "text/plain"}
    return web.Response(body=", ".join(names).encode(), headers=headers)


def _no_resource(request: web.Request) -> web.Response:
    path = request.rel_url.raw_path
    if path in _ROOTS:
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        return web.Response(status=301, headers={"Location": f"{path}/{query}"})
    raise RestError(404, "Not Found")


def _not_allowed(request: web.Request, resource: FoundPath) -> web.Response:
    names = sorted({*resource.methods, "OPTIONS"})
    reason = f"{request.method[:20]} is not allowed here: {', '.join(names)}"
    return json_response({"reason": reason}, 405, {"Allow": ",".join(names)})
