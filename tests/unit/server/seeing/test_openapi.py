"""The description of what every server has."""

from server.seeing.openapi import document
from server.seeing.own_operations import OWN_OPERATIONS


def test_each_of_our_own_operations_has_a_name_of_its_own() -> None:
    paths = document("Floodgate", OWN_OPERATIONS)["paths"]
    # With a slash at the end it is another path
    names = [one["operationId"] for item in paths.values() for one in item.values()]
    assert sorted(set(names)) == sorted(names)
