"""The clients of one namespace take its topics in turn."""

from __future__ import annotations

import pytest

from loadgen.scenarios.lookups.task import in_turn


@pytest.mark.parametrize(("clients", "namespaces"), [(10, 1), (10, 2), (10, 3), (2, 2), (1, 1)])
def test_no_topic_of_any_namespace_is_left_out(clients: int, namespaces: int) -> None:
    # Given
    topics, rounds = 20, 20
    for namespace in range(namespaces):
        asked = set()
        # When
        for client in range(namespace, clients, namespaces):
            first, step = in_turn(client, clients, namespaces)
            asked |= {(first + number * step) % topics for number in range(rounds)}
        # Then
        assert asked == set(range(topics))
