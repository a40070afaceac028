"""A ledger's figures, and the ledger's entries in memory."""

from itertools import accumulate

import pytest

from broker.messages.stores.sqlite.sqlite_ledger import (
    ENTRY_OVERHEAD_BYTES,
    RecentEntries,
    SqliteLedger,
)
from tests.support.stores.message_stores import digest

MARKS = 256


def ledger_of(sizes: list[int], confirmed: int | None = None) -> SqliteLedger:
    """Return a ledger with entries of given sizes, the first ``stored`` of them stored."""
    ledger = SqliteLedger(1, 1)
    for size in sizes:
        ledger.add(bytes(size), digest())
    stored = len(sizes) if confirmed is None else confirmed
    ledger.confirm(stored, sum(sizes[:stored]))
    return ledger


def starts(sizes: list[int]) -> list[int]:
    """Where each entry begins, and the last ends."""
    return [*accumulate(sizes, initial=0)]


def test_up_to_the_number_of_marks_bytes_before_each_entry_are_exact() -> None:
    sizes = [number % 7 for number in range(MARKS)]
    ledger = ledger_of(sizes)
    assert [ledger.bytes_before(number) for number in range(MARKS + 1)] == starts(sizes)


@pytest.mark.parametrize("count", [MARKS + 1, 2 * MARKS, 2 * MARKS + 1, 10_000])
def test_bytes_are_exact_at_marks_and_estimated_between_marks(count: int) -> None:
    sizes = [number % 7 for number in range(count)]
    ledger = ledger_of(sizes)
    exact, stride = starts(sizes), ledger._stride
    about = [ledger.bytes_before(number) for number in range(count + 1)]
    assert len(ledger._marks) <= MARKS
    assert about[::stride] == exact[::stride]
    assert about == sorted(about)
    assert about[-1] == exact[-1]
    assert max(abs(one - other) for one, other in zip(about, exact, strict=True)) <= 6 * stride


def test_marks_double_their_stride_so_that_memory_does_not_grow() -> None:
    ledger = ledger_of([1] * MARKS)
    assert (len(ledger._marks), ledger._stride) == (MARKS, 1)
    ledger.add(b"1", digest())
    assert (len(ledger._marks), ledger._stride) == (MARKS // 2 + 1, 2)
    assert [ledger.bytes_before(number) for number in (0, MARKS, MARKS + 1)] == [0, 256, 257]


def test_the_byte_size_of_the_stored_entries_is_always_exact() -> None:
    sizes = [number % 7 for number in range(1_001)]
    for confirmed in (1, 500, 999, 1_000):
        ledger = ledger_of(sizes, confirmed)
        assert ledger.bytes_before(ledger.confirmed) == sum(sizes[:confirmed])
        assert ledger.info.size_bytes == sum(sizes[:confirmed])


def test_a_ledger_from_the_database_has_exact_ends_and_estimates_between() -> None:
    ledger = SqliteLedger.stored(5, 1, 10, 1_000, 7)
    assert [ledger.bytes_before(number) for number in (0, 3, 10)] == [0, 300, 1_000]
    assert (len(ledger), ledger.confirmed, ledger.recent_from) == (10, 10, 10)
    assert (ledger.closed_at, ledger.opened_at) == (7, 0)


@pytest.mark.parametrize("count", [3, MARKS, MARKS + 1, 1_000])
@pytest.mark.parametrize("lost", [0, 1, 3, 1_000])
def test_unstored_entries_are_cut_and_replaced_by_new_entries(count: int, lost: int) -> None:
    sizes = [number % 7 + 1 for number in range(count)]
    left = max(0, count - lost)
    ledger = ledger_of(sizes, left)
    assert ledger.cut() == (count - left, sum(sizes[left:]))
    assert (len(ledger), ledger.size_bytes, len(ledger.recent)) == (left, sum(sizes[:left]), left)
    again = sizes[:left] + [9] * 600
    for number in range(left, len(again)):
        assert ledger.add(bytes(9), digest()) == number
    stride = ledger._stride
    marked = [ledger.bytes_before(number) for number in range(0, len(again), stride)]
    assert marked == starts(again)[:-1:stride]
    assert ledger.bytes_before(len(again)) == sum(again)


def test_a_read_from_memory_ends_at_its_bounds_and_at_the_last_stored_entry() -> None:
    ledger = ledger_of([4] * 10, confirmed=8)
    ledger.forget_recent(2)
    assert ledger.end_of_recent(2, 3, 100) == 5
    assert ledger.end_of_recent(2, 100, 8) == 4
    assert ledger.end_of_recent(2, 100, 1) == 3
    assert ledger.end_of_recent(2, 0, 100) == 3
    assert ledger.end_of_recent(2, 100, 100) == 8


def test_the_oldest_entries_of_all_ledgers_leave_memory_first() -> None:
    one, other = ledger_of([100] * 4), ledger_of([100] * 4)
    cost = 100 + ENTRY_OVERHEAD_BYTES
    recent = RecentEntries(5 * cost)
    recent.add(one, 2, 200)
    recent.add(other, 2, 200)
    assert (one.recent_from, other.recent_from, recent.size_bytes) == (0, 0, 4 * cost)
    recent.add(one, 2, 200)
    assert (one.recent_from, other.recent_from, recent.size_bytes) == (2, 0, 4 * cost)
    recent.add(other, 2, 200)
    assert (one.recent_from, other.recent_from, recent.size_bytes) == (2, 2, 4 * cost)
    assert [len(one.recent), len(other.recent)] == [2, 2]


def test_a_memory_bound_of_zero_keeps_no_recent_entries() -> None:
    ledger = ledger_of([1] * 3)
    recent = RecentEntries(0)
    recent.add(ledger, 3, 3)
    assert (ledger.recent_from, ledger.recent, recent.size_bytes) == (3, [], 0)


def test_entries_of_a_dropped_ledger_free_their_memory() -> None:
    dropped, other = ledger_of([100] * 4), ledger_of([100] * 4)
    cost = 100 + ENTRY_OVERHEAD_BYTES
    recent = RecentEntries(4 * cost)
    recent.add(dropped, 4, 400)
    recent.forget(dropped)
    assert (recent.size_bytes, dropped.recent) == (0, [])
    recent.add(dropped, 1, 100)  # Stored after it was dropped.
    recent.add(other, 4, 400)
    assert (recent.size_bytes, len(other.recent)) == (4 * cost, 4)


def test_dropped_ledgers_do_not_accumulate_in_memory() -> None:
    recent = RecentEntries(1 << 20)
    kept = ledger_of([1])
    recent.add(kept, 1, 1)
    for _ in range(3_000):
        ledger = ledger_of([1])
        recent.add(ledger, 1, 1)
        recent.forget(ledger)
    assert len(recent._groups) < 1_010
    assert (len(kept.recent), recent.size_bytes) == (1, 1 + ENTRY_OVERHEAD_BYTES)
