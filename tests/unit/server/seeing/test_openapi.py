"""The OpenAPI description common to all servers."""

from server.seeing.openapi import document
from server.seeing.own_operations import OWN_OPERATIONS


def test_each_of_floodgates_own_operations_has_a_unique_id() -> None:
    paths = document("Floodgate", OWN_OPERATIONS)["paths"]
    # A trailing slash makes a different path
    names = [one["operationId"] for item in paths.values() for one in item.values()]
    assert sorted(set(names)) == sorted(names)
