from collections.abc import Iterator
from itertools import combinations

import pytest

from broker.policies.documents import in_force
from broker.policies.effective import DEFAULTS
from broker.policies.policy import Policy
from broker.policies.table import TABLE
from broker.policies.values import JsonNumber, schema_of

_VALUES = {"integer": JsonNumber("1"), "number": JsonNumber("1"), "boolean": True, "string": "x"}
OBJECTS = [row for row in TABLE if "properties" in schema_of(row.read)]


@pytest.mark.parametrize("row", OBJECTS, ids=lambda row: row.key)
def test_every_part_of_a_policy_is_optional(row: Policy) -> None:
    for body in bodies(row):
        in_force(DEFAULTS, {row.key: row.read(body)})


def bodies(row: Policy) -> Iterator[dict[str, object]]:
    """Yield objects with some of the parts of a policy."""
    members = schema_of(row.read)["properties"]
    values = {name: of.get("enum", [_VALUES[of["type"]]])[0] for name, of in members.items()}
    for size in range(len(values) + 1):
        for names in combinations(values, size):
            yield {name: values[name] for name in names}
