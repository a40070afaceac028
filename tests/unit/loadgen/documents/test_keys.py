"""A shell completes the paths of settings, one step at a time."""

from __future__ import annotations

import pytest

from loadgen.documents.keys import complete_path
from loadgen.documents.reading import read_document

STUCK = read_document("stuck")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("s", ["seed", "servers.", "shocks."]),
        ("servers.pro", ["servers.profile", "servers.proxy."]),
        ("servers.broker.maxTopicListInFlightHeapMemSizeM", [
            "servers.broker.maxTopicListInFlightHeapMemSizeMB"
        ]),
        ("clients.", ["clients.healthy.", "clients.stuck."]),
        ("clients.stuck.r", ["clients.stuck.read."]),
        ("clients.stuck.pi", ["clients.stuck.pipelined"]),
        ("clients.stuck.read.n", ["clients.stuck.read.never"]),
        ("clients.stuck.arrive.o", ["clients.stuck.arrive.over"]),
        ("nothing.", []),
        ("clients.stuck.read.never.x", []),
    ],
)  # fmt: skip
def test_the_next_step_of_a_path(text: str, paths: list[str]) -> None:
    assert complete_path(text, STUCK) == paths


def test_without_a_document_no_group_has_a_name() -> None:
    assert complete_path("clients.") == []
    assert "clients.orders.subscription" in complete_path("clients.orders.")
    assert "clients.orders.publishers" not in complete_path("clients.orders.")
