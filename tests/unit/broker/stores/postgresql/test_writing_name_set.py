"""Very many names in a set of parts."""

from broker.stores.postgresql.writing import PARTS, NameSet

NAMES = [f"persistent://t/n/{number}".encode() for number in range(20_000)]


def test_a_name_set_holds_each_name_once() -> None:
    found = NameSet()
    assert list(found.new([b"a", b"b", b"a"])) == [b"a", b"b"]
    found.add([b"b", b"c"])
    assert list(found.new([b"c", b"d"])) == [b"d"]
    assert (sorted(found), len(found)) == ([b"a", b"b", b"c", b"d"], 4)
    assert b"d" in found
    assert b"e" not in found
    found.clear()
    assert (list(found), len(found)) == ([], 0)


def test_no_part_of_a_large_name_set_is_large() -> None:
    found = NameSet()
    found.add(NAMES)
    assert len(found) == len(NAMES)
    assert max(map(len, found._parts)) < 3 * len(NAMES) / PARTS
