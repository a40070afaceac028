"""Options that change all groups of a scenario at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from loadgen.documents.faults import meant
from loadgen.errors import UsageError
from loadgen.scenarios.discovery.scenario import Family

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_READER = {
    "read_rate_bytes_per_second": "rate_bytes_per_second",
    "receive_buffer_bytes": "receive_buffer_bytes",
}


def changed_groups(
    groups: Sequence[Mapping[str, Any]], changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return groups with another number of clients in all, another family, reader or pattern.

    Args:
        groups: As a document has them.
        changes: By the names of the scenario's fields; ``clients`` is the sum.

    Raises:
        UsageError: There are fewer clients than groups, or no such family.
    """
    families = get_args(Family)
    if changes.get("family", families[0]) not in families:
        raise UsageError(
            f"--family {changes['family'][:60]!r} is none{meant(changes['family'], families)}"
        )
    sizes = [group["clients"] for group in groups]
    if "clients" in changes:
        sizes = shares(changes["clients"], sizes)
    reader = {name: changes[field] for field, name in _READER.items() if field in changes}
    both = {field: changes[field] for field in ("family", "pattern") if field in changes}
    return [
        {**group, **both, "clients": size, "reader": {**group["reader"], **reader}}
        for group, size in zip(groups, sizes, strict=True)
    ]


def shares(total: int, sizes: Sequence[int]) -> list[int]:
    """Return how many of a total each group has, in proportion to its size, and one at least.

    Raises:
        UsageError: There are not enough for one each.
    """
    if total < len(sizes):
        raise UsageError(
            f"--clients {total}: the scenario has {len(sizes)} groups of at least one client each"
        )
    exact = [total * size / sum(sizes) for size in sizes]
    found = [max(1, int(share)) for share in exact]
    # The largest remainders get one more, of equal ones the first; what is too much after one for
    # each is the largest's.
    order = sorted(range(len(sizes)), key=lambda place: -(exact[place] % 1))
    for place in order[: max(0, total - sum(found))]:
        found[place] += 1
    while sum(found) > total:
        found[found.index(max(found))] -= 1
    return found
