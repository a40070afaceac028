"""The path of an endpoint determines the required permission."""

from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest
from aiohttp.test_utils import make_mocked_request

from broker.admin.authorizing import SUPERUSER_NEEDED
from broker.admin.context import FLOODGATE_ADMIN, AdminContext
from broker.admin.paths import Endpoint
from broker.admin.routes import AdminRequests, endpoints
from broker.authorization.operations import (
    Level,
    NamespaceOperation,
    Needs,
    PolicyName,
    TenantOperation,
    TopicOperation,
)
from server.http import RestError

ALL = endpoints(cast("AdminContext", Mock()))
OF_NOBODY_IN_PARTICULAR = {
    ("GET", "/admin/v2/brokers/version"),
    ("GET", "/admin/v2/brokers/ready"),
    ("GET", "/admin/v2/clusters"),
}
"""Endpoints open to every authenticated role."""
SWITCHED_OFF = ("/admin/v3/", "/admin/v2/functions/", "/admin/v2/worker")
"""Endpoints refused to every role, before authentication."""


def names_needed(needs: Needs) -> set[str]:
    if isinstance(needs, TopicOperation):
        return {"{tenant}", "{namespace}", "{topic}"}
    if isinstance(needs, NamespaceOperation | PolicyName):
        return {"{tenant}", "{namespace}"}
    if needs is TenantOperation.LIST_TENANTS:
        return set()
    in_tenant = needs is Level.TENANT_ADMIN or isinstance(needs, TenantOperation)
    return {"{tenant}"} if in_tenant else set()


def test_every_endpoint_path_names_the_resource_of_its_required_permission() -> None:
    assert len(ALL) > 400
    assert not [one for one in ALL if names_needed(one.needs) - set(one.path.split("/"))]


def test_only_version_readiness_and_clusters_are_open_to_every_authenticated_role() -> None:
    found = {(one.method, one.path) for one in ALL if one.needs is Level.AUTHENTICATED}
    found = {one for one in found if not one[1].startswith(SWITCHED_OFF)}
    assert found == OF_NOBODY_IN_PARTICULAR


async def test_an_unauthorized_request_does_not_reach_its_handler() -> None:
    handler, gate = AsyncMock(), AsyncMock()
    gate.check.side_effect = RestError(401, SUPERUSER_NEEDED)
    endpoint = Endpoint("GET", "/admin/v2/secret", Level.SUPERUSER, handler=handler)
    requests = AdminRequests([endpoint], FLOODGATE_ADMIN, gate)
    with pytest.raises(RestError, match="super-user"):
        await requests.answer(make_mocked_request("GET", "/admin/v2/secret"))
    assert gate.check.await_args.args[0] is Level.SUPERUSER
    handler.assert_not_awaited()
