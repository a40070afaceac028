"""Sets of a million names are freed in many turns of the event loop."""

import asyncio
import itertools
import sys

from broker.watches.names.sorted_names import NamesDisposal, SortedNames
from server.tasks import cooperative
from tests.support.clocks.settle import settle


def numbered(count: int) -> list[bytes]:
    return [f"persistent://t/n/{number:06d}".encode() for number in range(count)]


async def test_a_set_whose_nodes_are_slow_to_free_is_freed_a_node_per_turn(monkeypatch) -> None:
    moments = itertools.count()
    monkeypatch.setattr(cooperative, "perf_counter", lambda: next(moments) * 3_600.0)
    disposal, names = NamesDisposal(), SortedNames.from_sorted(numbered(1_000))
    leaves = len(list(names.nodes()))
    disposal.free(names)
    del names
    turns = 0
    while len(disposal):
        await asyncio.sleep(0)
        turns += 1
    assert turns == 2 * leaves - 1


async def test_disposing_of_a_version_frees_only_its_unshared_names() -> None:
    names = numbered(1_000)
    kept, gone = names[0], names[-1]
    before = SortedNames.from_sorted(names)
    after = before.without_name(gone)
    del names
    counts = sys.getrefcount(kept), sys.getrefcount(gone)
    disposal = NamesDisposal()
    disposal.free(before)
    del before
    await settle()
    assert len(disposal) == 0
    assert (sys.getrefcount(kept), sys.getrefcount(gone)) == (counts[0], counts[1] - 1)
    assert list(after.names()) == numbered(999)


async def test_an_empty_set_needs_no_disposal() -> None:
    disposal = NamesDisposal()
    disposal.free(SortedNames())
    assert len(disposal) == 0
