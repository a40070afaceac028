"""The list of calls that are not implemented names none that is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from broker.admin.resources.brokers import BrokerAdmin
from broker.admin.resources.lookup import LookupAdmin
from broker.admin.resources.namespaces import NamespaceAdmin
from broker.admin.resources.not_implemented import NotImplementedAdmin
from broker.admin.resources.ownership import OwnershipAdmin
from broker.admin.resources.tenants import TenantAdmin
from broker.admin.resources.topics import TopicAdmin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.admin.context import AdminContext
    from broker.admin.paths import Endpoint


def calls(endpoints: Iterable[Endpoint]) -> set[tuple[str, str]]:
    """Method and path, whatever the path's variables are called."""
    return {(one.method, re.sub(r"\{\w+\}", "{}", one.path)) for one in endpoints}


def test_a_call_that_is_implemented_is_not_listed_as_missing() -> None:
    # Given
    context = cast("AdminContext", None)
    namespaces, topics = NamespaceAdmin(context), TopicAdmin(context)
    implemented = (
        BrokerAdmin(context),
        OwnershipAdmin(context),
        TenantAdmin(context, namespaces),
        namespaces,
        topics,
        LookupAdmin(context),
    )
    # When
    missing = calls(NotImplementedAdmin(context, topics).endpoints())
    # Then
    assert missing
    assert not missing & calls(each for admin in implemented for each in admin.endpoints())
