"""A plug-in that breaks, so that a stack trace is logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.plugins.plugin import DefaultPulsarResourcesExtended
from tests.proof.secrets.strangers import FAILING

if TYPE_CHECKING:
    from proto.names import NamespaceName


class Raising(DefaultPulsarResourcesExtended):
    """Lists every namespace but one."""

    async def list_topics_of_namespace(
        self,
        namespace: NamespaceName,
        *others: Any,
    ) -> Any:
        """Return a listing, or break."""
        if namespace.local_name == FAILING:
            raise ZeroDivisionError("on purpose")
        return await super().list_topics_of_namespace(namespace, *others)
