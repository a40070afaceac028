"""Options change all groups of a scenario, and keep their proportions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.groups import changed_groups, shares
from loadgen.errors import UsageError

SIZES = st.lists(st.integers(1, 100_000), min_size=1, max_size=20)


@given(sizes=SIZES, total=st.integers(20, 1_000_000))
def test_shares_are_whole_clients_in_proportion_and_none_is_left_out(sizes, total: int) -> None:
    # When
    found = shares(total, sizes)
    # Then
    assert sum(found) == total
    assert min(found) >= 1
    raised = sum(1 for size in sizes if total * size < sum(sizes))
    for share, size in zip(found, sizes, strict=True):
        assert abs(share - total * size / sum(sizes)) < 1 + raised


@given(sizes=SIZES)
def test_as_many_as_there_are_changes_nothing(sizes: list[int]) -> None:
    assert shares(sum(sizes), sizes) == sizes


def test_fewer_clients_than_groups_are_refused() -> None:
    with pytest.raises(UsageError, match="--clients 2: the scenario has 3 groups"):
        shares(2, [5, 5, 5])


def test_family_reader_and_pattern_are_for_all_groups() -> None:
    # Given
    reader = {"never": True, "rate_bytes_per_second": 1.0}
    groups = [{"name": "a", "clients": 1, "family": "go", "pattern": None, "reader": reader}]
    # When
    found = changed_groups(
        groups, {"family": "cpp", "pattern": "x.*", "read_rate_bytes_per_second": 9.0}
    )
    # Then
    assert found == [
        {
            "name": "a",
            "clients": 1,
            "family": "cpp",
            "pattern": "x.*",
            "reader": {"never": True, "rate_bytes_per_second": 9.0},
        }
    ]
    with pytest.raises(UsageError, match="--family 'gopher' is none; there are once, polite"):
        changed_groups(groups, {"family": "gopher"})
