"""A plug-in that raises, so that a stack trace is logged."""

from typing import Any

from broker.plugins.plugin import DefaultPulsarResourcesExtended
from proto.names import NamespaceName
from tests.proof.secrets.strangers import FAILING


class Raising(DefaultPulsarResourcesExtended):
    """Lists every namespace but one."""

    async def list_topics_of_namespace(
        self,
        namespace: NamespaceName,
        *others: Any,
    ) -> Any:
        """Return a listing, or raise."""
        if namespace.local_name == FAILING:
            raise ZeroDivisionError("on purpose")
        return await super().list_topics_of_namespace(namespace, *others)
