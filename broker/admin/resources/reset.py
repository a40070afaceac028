"""``POST /admin/v2/floodgate/reset``: restores a new broker's state.

Deletes topics, messages, subscriptions, schemas, policies, configuration at run time, tenants and
namespaces, and clears faults, between the tests of suites that share a broker. Connections stay;
producers and consumers are closed with their topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.lockouts import still_superuser
from broker.admin.resources.namespaces import NamespaceAdmin
from broker.errors import RefusedError
from broker.messages.errors import MessageStoreError
from broker.stores.changes import NamespaceNotEmptyError, StoreError
from proto.names import NamespaceName
from server.faults.routes import ENABLED_KEY
from server.http import RestError
from server.tasks.cooperative import in_turns
from server.tasks.freed_memory import free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.admin.context import AdminContext
    from server.faults.registry import FaultRegistry

RESET_PATH = "/admin/v2/floodgate/reset"


def reset_routes(
    context: AdminContext, first: Sequence[str], faults: FaultRegistry | None
) -> list[web.RouteDef]:
    """Return the routes.

    Args:
        context: The broker.
        first: The namespaces of a new broker.
        faults: The registry of faults; None: faults and reset are disabled.
    """

    async def reset(request: web.Request) -> web.Response:
        if faults is None:
            raise RestError(404, f"reset is off here: start this broker with {ENABLED_KEY}=true")
        try:
            await context.dynamic.clear(still_superuser(request))
            faults.clear_all()
            await _Reset(context, first).run()
        except RefusedError as error:
            raise RestError(error.refusal.value, error.reason) from None
        except (StoreError, MessageStoreError) as error:
            raise RestError(500, str(error)) from None
        return web.Response(status=204)

    return [web.post(RESET_PATH, reset)]


class _Reset:
    def __init__(self, context: AdminContext, first: Sequence[str]) -> None:
        self._context = context
        self._first = first
        self._namespaces = NamespaceAdmin(context)

    async def run(self) -> None:
        """Delete everything, then create a new broker's content."""
        context = self._context
        namespaces = await context.store.namespaces()
        await self._namespaces.delete_with_topics(*namespaces)
        await free(namespaces)
        async for tenant in in_turns(await context.store.tenants()):
            try:
                await context.store.delete_tenant(tenant)
            except NamespaceNotEmptyError:
                raise RestError(
                    409,
                    f"others make namespaces of {tenant} meanwhile: stop them, then reset again",
                ) from None
        context.tenants_changed()
        first = [NamespaceName.parse(name) for name in self._first]
        await context.ownership.namespaces_deleted(first)  # See NamespaceAdmin.create.
        for namespace in first:
            await context.store.create_namespace(namespace)
