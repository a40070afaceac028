import re
from collections.abc import Iterable
from typing import cast
from unittest.mock import Mock

from broker.admin.context import AdminContext
from broker.admin.paths import Endpoint
from broker.admin.resources.constants import NotImplementedAdmin
from broker.admin.routes import endpoints


def calls(endpoints: Iterable[Endpoint]) -> list[tuple[str, str]]:
    """Return method and path, with the names of the path's variables removed."""
    return [(one.method, re.sub(r"\{(?!domain)\w+\}", "{}", one.path)) for one in endpoints]


def test_a_call_that_is_implemented_is_not_listed_as_missing() -> None:
    context = cast("AdminContext", Mock())
    missing = calls(NotImplementedAdmin(context).endpoints())
    every = calls(endpoints(context))
    assert missing
    assert not [one for one in set(missing) if every.count(one) > 1]
